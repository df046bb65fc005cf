//! The forms of what is sent: rates, EDNS options, paths.

use dnslab_traffic::Rate;
use dnslab_wire::EdnsOption;
use toml::de::{DeArray, DeValue};

use super::{Fault, Reader, Value};
use crate::error::{on_one_line, shown};
use crate::keys::Form;

impl Reader<'_> {
    /// A rate above zero that does not change.
    pub(super) fn rate(&self, number: &str) -> Result<Value, Fault> {
        let rate = number.parse::<f64>().unwrap_or(f64::NAN);
        if rate > 0.0 && rate <= Form::HIGHEST_RATE && Rate::Constant(rate).check().is_ok() {
            return Ok(Value::Rate(Rate::Constant(rate)));
        }
        let what = format!("is out of range: {}", shown(number));
        let help = "it takes queries per second, above 0 and at most 1,000,000,000".to_owned();
        Err(self.fault(&what, "out of range", help))
    }

    /// A rate written as text: steps, a ramp, or a number in quotes.
    pub(super) fn changing_rate(&self, text: &str) -> Result<Value, Fault> {
        text.trim().parse::<Rate>().map(Value::Rate).map_err(|error| {
            let what = format!("cannot be `{}`", shown(text));
            self.fault(&what, "no rate", on_one_line(&error.to_string()))
        })
    }

    /// EDNS options as a list of text.
    pub(super) fn edns_options(&self, list: &DeArray<'_>) -> Result<Value, Fault> {
        let option = |entry: &DeValue<'_>| match entry {
            DeValue::String(text) => self.edns_option(text),
            other => Err(self.wrong_type(other)),
        };
        self.fitting(list.iter().map(|it| option(it.get_ref())).collect::<Result<_, _>>()?)
    }

    /// EDNS options with commas between them.
    pub(super) fn edns_option_words(&self, text: &str) -> Result<Value, Fault> {
        let words = text.split(',').map(str::trim);
        self.fitting(words.map(|word| self.edns_option(word)).collect::<Result<_, _>>()?)
    }

    /// Options that fit a query together.
    fn fitting(&self, options: Vec<EdnsOption>) -> Result<Value, Fault> {
        let octets: usize = options.iter().map(|option| option.data.len() + 4).sum();
        if octets <= MAX_OPTION_OCTETS {
            return Ok(Value::EdnsOptions(options));
        }
        let what = format!("has options of {octets} octets in all");
        let help = format!("at most {MAX_OPTION_OCTETS} fit a query");
        Err(self.fault(&what, "too long", help))
    }

    /// One EDNS option: `CODE:HEX`.
    fn edns_option(&self, text: &str) -> Result<EdnsOption, Fault> {
        let digits = |text: &str| text.bytes().all(|octet| octet.is_ascii_digit());
        let read = |text: &str| {
            let (code, octets) = text.split_once(':')?;
            let code = Some(code).filter(|code| digits(code))?.parse::<u16>().ok()?;
            Some(EdnsOption { code, data: from_hexadecimal(octets)? })
        };
        read(text).ok_or_else(|| {
            let what = format!("is no list of EDNS options: `{}`", shown(text));
            let help = format!(
                "an option is its code, 0 to 65535, a colon, and its octets in hexadecimal, {}",
                self.for_example()
            );
            self.fault(&what, "not CODE:HEX", help)
        })
    }

    /// The path of an HTTP resource.
    pub(super) fn http_path(&self, text: &str) -> Result<Value, Fault> {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.~/".contains(letter);
        let is_short = text.len() <= Form::MAX_PATH;
        if text.starts_with('/') && is_short && text.chars().all(plain) {
            return Ok(Value::Text(text.to_owned()));
        }
        let help = match text.split_once('{') {
            Some((path, _)) if path.starts_with('/') && path.chars().all(plain) => {
                format!("{}; the variable is added by itself", self.written(&format!("\"{path}\"")))
            }
            _ => format!(
                "it begins with `/`, and holds letters, digits, `-`, `_`, `.`, `~` and `/`, {}",
                self.for_example()
            ),
        };
        Err(self.fault(&format!("is no path: `{}`", shown(text)), "not a path", help))
    }
}

/// Most octets of EDNS options, with their codes and lengths: the rest of a message holds a name, and
/// what else is added.
const MAX_OPTION_OCTETS: usize = 32_768;

/// The octets of a text of pairs of hexadecimal digits.
fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let value = |digit: u8| char::from(digit).to_digit(16).and_then(|it| u8::try_from(it).ok());
    let octet = |pair: &[u8]| Some(value(pair[0])? << 4 | value(pair[1])?);
    let is_even = digits.len().is_multiple_of(2);
    if is_even { digits.chunks_exact(2).map(octet).collect() } else { None }
}
