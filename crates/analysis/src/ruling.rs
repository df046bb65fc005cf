//! What limits say of variants.

use dnslab_record::{CostLimit, TimeOuts};
use serde::{Deserialize, Serialize};

use crate::not_compared::NotCompared;
use crate::statistics::Estimate;

/// What a limit says of all variants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LimitRuling {
    /// The limit.
    pub limit: CostLimit,
    /// The name of the figure that it is about.
    pub metric: String,
    /// That of the worst variant; unclear without any.
    pub ruling: Ruling,
    /// What it says of each variant, in their order.
    pub variants: Vec<Judgement>,
}

impl LimitRuling {
    pub(crate) fn of(limit: CostLimit, variants: Vec<Judgement>) -> Self {
        let worst = variants.iter().map(|judgement| judgement.ruling).max();
        Self {
            limit,
            metric: limit.indicator().to_string(),
            ruling: worst.unwrap_or(Ruling::Unclear),
            variants,
        }
    }
}

/// What a limit says of one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Judgement {
    /// The variant.
    pub variant: String,
    /// The variant that it is compared with; `None` for an absolute limit, or if it is with none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// For a relative limit the relative difference, for an absolute one the mean over the runs; `None`
    /// if the figure was not measured, or is the time-out in a run.
    pub found: Option<Estimate>,
    /// In how many of the variant's runs the figure is the time-out; `None` if in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_outs: Option<TimeOuts>,
    /// In how many runs of what it is compared with the figure is the time-out; `None` if in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_time_outs: Option<TimeOuts>,
    /// Whether it keeps within the limit.
    pub ruling: Ruling,
    /// Why the figure is compared with none, of the variant or of what it is compared with; `None` if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<NotCompared>,
    /// Whether it is open only because other programs used the machine meanwhile ([`crate::is_disturbed`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_disturbed: bool,
    /// What dnslab itself may add to the figure, as a share of it, where that leaves it open; else `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<f64>,
    /// How many more runs of each side would probably tell; `None` where that is not asked or cannot be
    /// said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_runs: Option<u32>,
}

impl Judgement {
    /// What a decision says of a variant, without a figure.
    pub(crate) fn of(variant: &str, decision: Decision) -> Self {
        Self {
            variant: variant.to_owned(),
            against: None,
            found: None,
            time_outs: None,
            reference_time_outs: None,
            ruling: match decision {
                Decision::Ruled(ruling) => ruling,
                Decision::Disturbed => Ruling::Unclear,
            },
            not_compared: None,
            is_disturbed: decision == Decision::Disturbed,
            floor: None,
            more_runs: None,
        }
    }
}

/// How a judgement comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// By what was measured.
    Ruled(Ruling),
    /// Other programs used the machine, or it would be decided.
    Disturbed,
}

impl Decision {
    pub(crate) const UNCLEAR: Self = Self::Ruled(Ruling::Unclear);
}

/// Whether a variant keeps within a limit. A gate that failed on the estimate alone would fail by
/// noise, and one that passed whatever is not certainly beyond its limit would pass what was hardly
/// measured: so there are three.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Ruling {
    /// It keeps it: the whole interval lies within the limit, its ends included.
    Pass,
    /// The limit lies inside the interval, the interval has no end, one run decides, the figure was not
    /// measured, it is the time-out in a run, or it is not the server's ([`NotCompared`]).
    Unclear,
    /// It does not keep it for certain: the whole interval lies beyond the limit, not by one run alone, and others
    /// did not hold up its runs ([`crate::is_disturbed`]). Where the figure is the time-out in some runs, the
    /// time-out is the least that it can be there, and even so the interval lies beyond the limit.
    Fail,
}
