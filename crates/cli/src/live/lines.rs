//! A line for each second of a load, as users of dnsperf know them: where there is no terminal, and with `--plain`.

use dnslab_record::LoadPart;
use dnslab_report::number;

use super::view::Latest;

/// The time, whose load it is, and its figures, in columns.
pub(super) fn line(name: &str, latest: &Latest) -> String {
    let figures = &latest.figures;
    let quantile = |place: usize| {
        let ns = figures.quantiles_ns[place];
        ns.map_or_else(|| number::NONE.to_owned(), |ns| number::duration(ns as f64))
    };
    let seconds = format!("{:.1} s", latest.until_ns as f64 / 1e9);
    let (qps, lost) = (number::qps(figures.answered_qps), number::count(figures.lost));
    let mark = match (latest.is_warm_up, latest.part) {
        (true, _) => "  (warm-up)",
        (false, LoadPart::Common) => "  (common load)",
        (false, LoadPart::Main) => "",
    };
    let cpu = figures.server_cpu.map(|share| number::percent(share, 0));
    let cpu = cpu.map_or_else(String::new, |cpu| format!("  CPU {cpu:>5}"));
    format!(
        "{seconds:>10}  {name}  {qps:>9} qps  p50 {:>7}  p99 {:>7}  lost {lost}{cpu}{mark}",
        quantile(0),
        quantile(2)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::view::Figures;

    #[test]
    fn figures_stand_in_columns() {
        let latest = Latest {
            until_ns: 12_000_000_000,
            is_warm_up: false,
            part: LoadPart::Main,
            figures: Figures {
                length_ns: 1_000_000_000,
                answered_qps: 145_210.4,
                lost: 12,
                lost_share: 0.0,
                quantiles_ns: [Some(89_100), None, Some(1_020_000)],
                server_cpu: Some(0.981),
                load_cpu: None,
            },
        };
        let expected = "    12.0 s  tcp    145,210 qps  p50 89.1 us  p99 1.02 ms  lost 12  \
                        CPU  98 %";
        assert_eq!(line("tcp", &latest), expected);
        let nothing = Latest { figures: Figures::default(), is_warm_up: true, ..latest };
        let expected =
            "    12.0 s  tcp          0 qps  p50       -  p99       -  lost 0  (warm-up)";
        assert_eq!(line("tcp", &nothing), expected);
    }
}
