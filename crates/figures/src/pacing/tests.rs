//! The streaming figures against those of a straightforward computation.

use proptest::prelude::*;

use super::*;

type Milliseconds = Vec<(u32, u32)>;

fn tally(milliseconds: &Milliseconds) -> Pacing {
    let mut tally = PacingTally::new();
    milliseconds.iter().for_each(|&(due, sent)| tally.push(due, sent));
    tally.finish()
}

/// Errors of all whole windows of a width that have something due, and the number of those that
/// have not: everything kept, then sorted.
fn errors(milliseconds: &Milliseconds, width_ms: usize) -> (Vec<f64>, u64) {
    let (mut errors, mut without_due) = (Vec::new(), 0);
    for window in milliseconds.chunks_exact(width_ms) {
        let due: i64 = window.iter().map(|&(due, _)| i64::from(due)).sum();
        let sent: i64 = window.iter().map(|&(_, sent)| i64::from(sent)).sum();
        match due {
            0 => without_due += 1,
            due => errors.push((sent - due).abs() as f64 / due as f64),
        }
    }
    errors.sort_by(f64::total_cmp);
    (errors, without_due)
}

/// The smallest error that at least this share of the sorted errors does not exceed.
fn quantile(errors: &[f64], share: f64) -> f64 {
    let rank = (share * errors.len() as f64).ceil().max(1.0) as usize;
    errors.get(rank - 1).copied().unwrap_or(0.0)
}

proptest! {
    #[test]
    fn it_is_what_keeping_everything_gives(
        milliseconds in prop::collection::vec(
            prop_oneof![
                4 => (1_u32..400, -20_i64..20).prop_map(|(due, off)| {
                    (due, (i64::from(due) + off).max(0) as u32)
                }),
                1 => (0_u32..3, 0_u32..3),
                1 => Just((0, 0)),
            ],
            0..2_300,
        ),
    ) {
        let pacing = tally(&milliseconds);
        prop_assert_eq!(pacing.windows.len(), 4);
        for (found, width_ms) in pacing.windows.iter().zip([1_000, 100, 10, 1]) {
            let (errors, without_due) = errors(&milliseconds, width_ms);
            prop_assert_eq!(found.width_ns, width_ms as u64 * 1_000_000);
            prop_assert_eq!(found.windows, errors.len() as u64);
            prop_assert_eq!(found.without_due, without_due);
            let within = errors.iter().filter(|error| **error <= 0.01 + 1e-12).count();
            prop_assert_eq!(found.within_1_percent, within as u64);
            let mean = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
            prop_assert!((found.mean_error - mean).abs() < 1e-9);
            prop_assert_eq!(found.max_error, errors.last().copied().unwrap_or(0.0));
            for (quantile_found, share) in [(found.p50_error, 0.5), (found.p99_error, 0.99)] {
                let exact = quantile(&errors, share);
                // Half a part of a million by rounding, then 0.1 % downwards by the histogram.
                let (low, high) = (exact * 0.999 - 1e-6, exact + 1e-6);
                prop_assert!(
                    (low..=high).contains(&quantile_found),
                    "{} of {} ms windows: {} instead of {}", share, width_ms, quantile_found, exact
                );
            }
        }
    }
}

#[test]
fn exactly_one_percent_is_within_one_percent() {
    let pacing = tally(&vec![(100, 99); 10]);
    let narrow = pacing.of_width(1_000_000).unwrap();
    assert_eq!((narrow.windows, narrow.within_1_percent), (10, 10));
    assert_eq!((narrow.p50_error, narrow.p99_error, narrow.max_error), (0.01, 0.01, 0.01));
    assert_eq!(narrow.share_within_1_percent(), Some(1.0));
    let wide = pacing.of_width(10_000_000).unwrap();
    assert_eq!((wide.windows, wide.due, wide.mean_due()), (1, 1_000, Some(1_000.0)));
    // Not one window of 100 ms is whole.
    let none = pacing.of_width(100_000_000).unwrap();
    assert_eq!((none.windows, none.mean_error, none.share_within_1_percent()), (0, 0.0, None));
    assert_eq!(pacing.of_width(5), None);
}

#[test]
fn an_error_beyond_all_bounds_is_kept_as_the_largest() {
    let pacing = tally(&vec![(1, u32::MAX)]);
    let narrow = pacing.of_width(1_000_000).unwrap();
    assert_eq!(narrow.max_error, f64::from(u32::MAX) - 1.0);
    assert!((999.0..=1_000.0).contains(&narrow.p99_error), "{}", narrow.p99_error);
}

#[test]
fn several_runs_are_one_pacing() {
    let even = vec![(100, 100); 30];
    let uneven: Milliseconds = (0..10).map(|ms| (100, if ms == 0 { 50 } else { 100 })).collect();
    let runs = [tally(&even), tally(&uneven)];
    let all = Pacing::of_runs(&runs).unwrap();
    let narrow = all.of_width(1_000_000).unwrap();
    assert_eq!((narrow.windows, narrow.within_1_percent, narrow.due), (40, 39, 4_000));
    assert!((narrow.mean_error - 0.5 / 40.0).abs() < 1e-12);
    // Of the worst run: no quantile of all windows can be made from those of the runs.
    assert_eq!((narrow.p50_error, narrow.max_error), (0.0, 0.5));
    assert!((0.4995..=0.5).contains(&narrow.p99_error), "{}", narrow.p99_error);
    assert_eq!(Pacing::of_runs(&[]), None);
}
