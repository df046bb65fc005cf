//! Whether a measured figure is the programmed one.

/// Relative error that a quantile may have on top of the machine's floor.
const TOLERANCE: f64 = 0.03;

/// The largest floor of the machine, for the quantiles 0.5 and 0.99, milliseconds. Beyond it nobody could
/// tell the engine's faults from the machine's.
pub(super) const MAX_FLOOR_MS: [f64; 2] = [1.0, 10.0];

/// One figure that was programmed and measured.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationCheck {
    /// What was programmed, and the figure of it.
    pub name: String,
    /// The programmed figure, with its unit.
    pub expected: String,
    /// The measured figure, with its unit.
    pub measured: String,
    /// How far they may differ, and why.
    pub allowed: String,
    /// True if they differ by no more.
    pub passed: bool,
}

/// Judges a quantile of the latency. It must lie between the programmed value and that value plus the
/// machine's floor, with the tolerance on both sides. Nothing passes above the largest floor.
pub(super) fn check_latency(
    name: String,
    expected_ms: f64,
    measured_ms: f64,
    floor_ms: f64,
    most_floor_ms: f64,
) -> CalibrationCheck {
    let low = expected_ms * (1.0 - TOLERANCE);
    let high = expected_ms * (1.0 + TOLERANCE) + floor_ms;
    CalibrationCheck {
        name,
        expected: format!("{expected_ms:.3} ms"),
        measured: format!("{measured_ms:.3} ms"),
        allowed: allowed(floor_ms, most_floor_ms),
        passed: floor_ms <= most_floor_ms && (low..=high).contains(&measured_ms),
    }
}

/// Judges the answered rate of a closed loop with `window` outstanding queries by the same rule. The floor
/// makes each answer later, so it lowers the rate.
pub(super) fn check_rate(
    name: String,
    window: u32,
    delay_ms: f64,
    measured_qps: f64,
    floor_ms: f64,
) -> CalibrationCheck {
    let rate_qps = |latency_ms: f64| f64::from(window) * 1e3 / latency_ms;
    let low = rate_qps(delay_ms + floor_ms.max(0.0)) * (1.0 - TOLERANCE);
    let high = rate_qps(delay_ms) * (1.0 + TOLERANCE);
    CalibrationCheck {
        name,
        expected: format!("{:.0} qps", rate_qps(delay_ms)),
        measured: format!("{measured_qps:.0} qps"),
        allowed: allowed(floor_ms, MAX_FLOOR_MS[0]),
        passed: floor_ms <= MAX_FLOOR_MS[0] && (low..=high).contains(&measured_qps),
    }
}

/// Half a sentence.
fn allowed(floor_ms: f64, most_floor_ms: f64) -> String {
    if floor_ms <= most_floor_ms {
        format!("3 %, and the machine's own {floor_ms:.3} ms")
    } else {
        format!(
            "nothing: the machine is too noisy, its own {floor_ms:.3} ms are more than \
             {most_floor_ms} ms"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_judged_with_the_floor_up_to_its_cap() {
        for (measured_ms, floor_ms, passed) in [
            (40.0, 0.1, true),
            (38.7, 0.0, false),
            (38.9, 0.0, true),
            (41.3, 0.2, true),
            (41.3, 0.05, false),
            (41.9, 1.0, true),
            // The figure is right, but the machine would have hidden a wrong one.
            (40.0, 1.1, false),
            (40.0, f64::NAN, false),
            (f64::NAN, 0.1, false),
        ] {
            let check = check_latency(String::new(), 40.0, measured_ms, floor_ms, 1.0);
            assert_eq!(check.passed, passed, "{check:?}");
            let noisy = check.allowed.contains("the machine is too noisy");
            assert_eq!(noisy, floor_ms.is_nan() || floor_ms > 1.0, "{check:?}");
        }
    }

    #[test]
    fn rates_follow_from_window_and_delay() {
        for (measured_qps, floor_ms, passed) in [
            (2_500.0, 0.1, true),
            (2_580.0, 0.1, false),
            (2_570.0, 0.1, true),
            (2_430.0, 0.0, true),
            (2_420.0, 0.0, false),
            // 100 / 41 ms, and 3 % below it.
            (2_370.0, 1.0, true),
            (2_360.0, 1.0, false),
            (2_500.0, 1.1, false),
            (0.0, 0.1, false),
        ] {
            let check = check_rate(String::new(), 100, 40.0, measured_qps, floor_ms);
            assert_eq!(check.passed, passed, "{check:?}");
            assert_eq!(check.expected, "2500 qps");
        }
    }
}
