//! Objectives as they are written.

use super::*;

#[test]
fn an_objective_is_read_and_written() {
    for (text, expected) in [
        ("lost<0.1%, p99<10ms", "lost<0.1%, p99<10ms"),
        ("lost<0.001,p99 < 10 ms", "lost<0.1%, p99<10ms"),
        (" p99.9<=1.5s ,", "p99.9<=1.5s"),
        ("mean<500us", "mean<500us"),
        ("max<0.5ms", "max<500us"),
        ("p50<999ns", "p50<999ns"),
        ("answered>99%", "answered>99%"),
        ("answered>=100%", "answered>=100%"),
        ("lost<=0%", "lost<=0%"),
        ("lost<7%", "lost<7%"),
        ("p29<29ms", "p29<29ms"),
    ] {
        let objective: Objective = text.parse().unwrap();
        assert_eq!(objective.to_string(), expected);
        assert_eq!(objective.to_string().parse::<Objective>().unwrap(), objective);
        let json = serde_json::to_string(&objective).unwrap();
        assert_eq!(serde_json::from_str::<Objective>(&json).unwrap(), objective);
    }
}

#[test]
fn bad_objectives_name_the_culprit_and_the_remedy() {
    for (text, expected) in [
        (" , ", "an objective needs a demand"),
        ("p99", "`p99` is no demand: write FIGURE<BOUND"),
        ("p99=10ms", "`p99=10ms` is no demand"),
        ("q99<10ms", "unknown figure `q99`: it is one of lost, answered"),
        ("memory<2GiB", "an objective says nothing of `memory`, which a limit can"),
        ("p<10ms", "unknown figure `p`"),
        ("p100<10ms", "`p100` is no percentile: it lies between"),
        ("p0<10ms", "`p0` is no percentile"),
        ("pNaN<10ms", "`pNaN` is no percentile"),
        ("p99>10ms", "`p99>10ms` demands a bad server: write p99<10ms"),
        ("lost>=1%", "`lost>=1%` demands a bad server: write lost<=1%"),
        ("answered<99%", "`answered<99%` demands a bad server: write answered>99%"),
        ("lost<10ms", "`10ms` in `lost<10ms` is no share: write it as 0.1%"),
        ("lost<101%", "`101%` in `lost<101%` is no share"),
        ("lost<NaN", "`NaN` in `lost<NaN` is no share"),
        ("p99<10", "`10` in `p99<10` is no duration: write it with its unit"),
        ("p99<10m", "`10m` in `p99<10m` is no duration: write it with its unit, as 500us"),
        ("p99<-1ms", "`-1ms` in `p99<-1ms` is no duration"),
        ("lost<0%", "nothing can meet `lost<0%`: write lost<=0%"),
        ("answered>100%", "nothing can meet `answered>100%`: write answered>=100%"),
        ("p99<0ms", "nothing can meet `p99<0ms`"),
        ("lost<0.1%, p99<10mm", "`10mm` in `p99<10mm` is no duration"),
    ] {
        let error = text.parse::<Objective>().unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn a_bound_is_met_on_its_side() {
    let met = |demand: &str, figure: f64| demand.parse::<Threshold>().unwrap().is_met_by(figure);
    for (demand, figure, expected) in [
        ("lost<0.1%", 0.000_9, true),
        ("lost<0.1%", 0.001, false),
        ("lost<=0%", 0.0, true),
        ("lost<=0%", 1e-9, false),
        ("answered>99%", 0.99, false),
        ("answered>=99%", 0.99, true),
        ("p99<10ms", 9_999_999.0, true),
        ("p99<10ms", 10_000_000.0, false),
    ] {
        assert_eq!(met(demand, figure), expected, "{demand} {figure}");
    }
}

#[test]
fn a_bound_beyond_the_time_out_is_found() {
    let beyond = |text: &str| {
        let objective: Objective = text.parse().unwrap();
        objective.beyond_timeout(2_000_000_000).map(|demand| demand.to_string())
    };
    assert_eq!(beyond("lost<10%, p99<1.9s"), None);
    assert_eq!(beyond("p50<1s, max<2s"), Some("max<2s".to_owned()));
}

#[test]
fn an_objective_says_how_many_queries_tell_whether_it_is_met() {
    for (objective, queries) in [
        ("lost<0.1%", 10_000.0),
        ("answered>99%", 1_000.0),
        ("p99<10ms", 1_000.0),
        ("p99.9<10ms", 10_000.0),
        ("mean<10ms", 10.0),
        ("lost<=0%", 10.0),
        ("lost<1%, p99.9<10ms, max<1s", 10_000.0),
    ] {
        let least = objective.parse::<Objective>().unwrap().least_queries();
        assert!((least / queries - 1.0).abs() < 1e-6, "{objective}: {least}");
    }
}
