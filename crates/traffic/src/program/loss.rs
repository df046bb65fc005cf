//! How many queries are never answered.

use std::fmt;
use std::str::FromStr;

use dnslab_wire::units::share;

use super::error::ProgramError;

/// Share of the queries that are read but not answered, in [0, 1].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loss(f64);

impl Loss {
    /// The share, in [0, 1].
    #[must_use]
    pub fn share(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Loss {
    type Error = ProgramError;

    fn try_from(share: f64) -> Result<Self, ProgramError> {
        if (0.0..=1.0).contains(&share) {
            Ok(Self(share))
        } else {
            Err(ProgramError::new("loss", &share.to_string(), "it must lie between 0 and 1"))
        }
    }
}

impl FromStr for Loss {
    type Err = ProgramError;

    /// Reads `0.01` or `1%`.
    fn from_str(text: &str) -> Result<Self, ProgramError> {
        let reason = "a share between 0 and 1 is expected, as in `0.01` or `1%`";
        share::read(text).map(Self).ok_or_else(|| ProgramError::new("loss", text, reason))
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read() {
        let check = |text: &str, share: f64| {
            let loss: Loss = text.parse().unwrap();
            assert!((loss.share() - share).abs() < 1e-12, "{text}");
            assert_eq!(loss.to_string().parse(), Ok(loss));
        };
        check("0", 0.0);
        check("1", 1.0);
        check("0.05", 0.05);
        check("5%", 0.05);
        check("100 %", 1.0);
        for text in ["", "%", "-0.1", "1.01", "101%", "NaN", "some"] {
            let error = text.parse::<Loss>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("loss `{text}`")), "{error}");
        }
    }
}
