//! Pacing as the far end of the wire saw it.

use serde::Serialize;

/// Milliseconds that the reflector keeps; `bpf/reflector.c` has the same number.
pub(crate) const KEPT_MS: u32 = 65_536;

/// Length of a window that is judged, milliseconds.
const WINDOW_MS: usize = 10;

/// A window this near to its intended number of queries is right.
const RIGHT_SHARE: f64 = 0.01;

/// How far the windows of one run were from the intended number of queries.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct PacingError {
    /// Windows that were judged.
    pub(crate) windows: usize,
    /// Over all of them.
    pub(crate) qps: f64,
    /// Share of the windows that are within 1 % of the intended number, in [0, 1].
    pub(crate) right_share: f64,
    /// Mean relative error of a window, as a share of the intended number.
    pub(crate) mean_error: f64,
    /// 0.99 quantile of the relative error.
    pub(crate) p99_error: f64,
    /// Largest relative error.
    pub(crate) max_error: f64,
}

/// Judges the queries of each millisecond against the intended rate in queries per second. The first tenth of
/// the time and the last window are left out: a program starts and ends there. `None` if less than one window
/// is left.
pub(crate) fn judge(queries_of_ms: &[u64], rate_qps: f64) -> Option<PacingError> {
    let first = queries_of_ms.iter().position(|queries| *queries > 0)?;
    let last = queries_of_ms.iter().rposition(|queries| *queries > 0)?;
    let begin = first + ((last - first) / 10).max(WINDOW_MS);
    let end = last.saturating_sub(WINDOW_MS);
    let judged = queries_of_ms.get(begin..end)?;
    let intended = rate_qps * WINDOW_MS as f64 / 1e3;
    let counts: Vec<u64> =
        judged.chunks_exact(WINDOW_MS).map(|window| window.iter().sum()).collect();
    let mut errors: Vec<f64> =
        counts.iter().map(|count| (*count as f64 - intended).abs() / intended).collect();
    errors.sort_by(f64::total_cmp);
    let windows = errors.len();
    let max_error = *errors.last()?;
    // Two even numbers may differ by a rounding error from 1 %.
    let right = errors.iter().filter(|error| **error <= RIGHT_SHARE + 1e-9).count();
    let p99_place = (windows * 99).div_ceil(100) - 1;
    Some(PacingError {
        windows,
        qps: counts.iter().sum::<u64>() as f64 / windows as f64 * 1e3 / WINDOW_MS as f64,
        right_share: right as f64 / windows as f64,
        mean_error: errors.iter().sum::<f64>() / windows as f64,
        p99_error: errors[p99_place],
        max_error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 s of 10 queries per ms (10,000 qps), after 50 ms of silence; `change` alters it.
    fn judged(change: impl FnOnce(&mut [u64])) -> PacingError {
        let mut counts = vec![0; 50];
        counts.extend([10; 1000]);
        change(&mut counts[50..]);
        counts.extend([0; 50]);
        judge(&counts, 10_000.0).unwrap()
    }

    #[test]
    fn an_even_stream_has_no_error() {
        let even = judged(|_| ());
        assert_eq!((even.windows, even.qps), (89, 10_000.0));
        assert_eq!((even.right_share, even.mean_error, even.max_error), (1.0, 0.0, 0.0));
    }

    #[test]
    fn a_stall_and_its_burst_are_two_wrong_windows() {
        // Judging begins 99 ms after the first query: 499..509 and 509..519 are windows.
        let stalled = judged(|counts| {
            counts[499..509].fill(0);
            counts[509] += 100;
        });
        assert!((stalled.right_share - 87.0 / 89.0).abs() < 1e-12);
        assert!((stalled.mean_error - 2.0 / 89.0).abs() < 1e-12);
        assert_eq!((stalled.qps, stalled.p99_error, stalled.max_error), (10_000.0, 1.0, 1.0));
    }

    #[test]
    fn one_percent_is_still_right() {
        let near = judged(|counts| counts[499] += 1);
        assert_eq!(near.right_share, 1.0);
        let far = judged(|counts| counts[499] += 2);
        assert!((far.right_share - 88.0 / 89.0).abs() < 1e-12);
    }

    #[test]
    fn the_ends_do_not_count() {
        let cut = judged(|counts| {
            counts[0] = 500;
            counts[999] = 500;
        });
        assert_eq!(cut.max_error, 0.0);
    }

    #[test]
    fn too_little_is_not_judged() {
        assert_eq!(judge(&[0; 100], 1.0), None);
        assert_eq!(judge(&[1; 15], 1.0), None);
        assert_eq!(judge(&[], 1.0), None);
    }
}
