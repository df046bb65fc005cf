//! `dnslab dashboard`: a page that draws what a Prometheus has of dnslab's metrics.

use anyhow::anyhow;
use dnslab_monitor::{AddressFault, http_address};
use dnslab_report::dashboard_page;

use crate::arguments::OutputFile;
use crate::arguments::monitoring_stack::Dashboard;
use crate::exit::{Exit, Failure};
use crate::make::write_to;

/// Where remote write goes, below the address of a Prometheus.
const WRITE: &str = "/api/v1/write";

pub(crate) fn dashboard(arguments: &Dashboard) -> Result<Exit, Failure> {
    let Dashboard { prometheus, output, force } = arguments;
    let address = address(prometheus).map_err(|error| Failure::bad_input(anyhow!(error)))?;
    let page = dashboard_page(address, env!("CARGO_PKG_VERSION"));
    let output_file = OutputFile { output: Some(output.clone()), force: *force };
    let exit = write_to(&output_file, |output| output.write_all(page.as_bytes()))?;
    if output.is_file() {
        say!("open {} in a browser: it asks {address}", output.display());
    }
    Ok(exit)
}

/// The address without a slash at its end, or what is wrong with it.
fn address(url: &str) -> Result<&str, String> {
    let address = url.trim_end_matches('/');
    let what = "the address of the Prometheus";
    let fault = match http_address(address) {
        // They would end what the page's policy allows, or be no part of what it asks.
        Ok(_) if address.contains(['#', ';', ',', '*', '\'', '"']) => {
            format!(
                "{what} has a character that the page cannot have there\n  hint:    leave out # ; , * ' and \""
            )
        }
        Ok(_) => match address.strip_suffix(WRITE) {
            None => return Ok(address),
            Some(above) => format!("{what} ends with {WRITE}\n  hint:    give it as {above}"),
        },
        Err(AddressFault::Url) => {
            format!(
                "`{url}` is no address of a Prometheus\n  hint:    give a URL as http://127.0.0.1:9090"
            )
        }
        Err(AddressFault::Port) => {
            format!(
                "{what} has a port that cannot be\n  hint:    a port is a number from 1 to 65535"
            )
        }
        Err(AddressFault::Password) => format!(
            "{what} holds a password, which the page would show to each reader\n  hint:    take a tunnel to it: ssh \
             -L 9090:127.0.0.1:9090 HOST, and http://127.0.0.1:9090"
        ),
        Err(AddressFault::Query) => {
            format!("{what} has a query\n  hint:    leave out what follows `?`")
        }
    };
    Err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked() {
        assert_eq!(address("http://127.0.0.1:9090/"), Ok("http://127.0.0.1:9090"));
        assert_eq!(address("https://[::1]/prometheus"), Ok("https://[::1]/prometheus"));
        for (url, expected) in [
            ("127.0.0.1:9090", "`127.0.0.1:9090` is no address of a Prometheus"),
            ("ftp://127.0.0.1", "is no address of a Prometheus"),
            ("http://127.0.0.1:99999", "a port is a number from 1 to 65535"),
            ("http://ann:secret@127.0.0.1:9090", "holds a password"),
            ("http://127.0.0.1:9090/graph?g0.expr=up", "leave out what follows `?`"),
            ("http://127.0.0.1:9090/#x", "leave out # ; , *"),
            ("http://a;b", "leave out # ; , *"),
            ("http://h*.x", "leave out # ; , *"),
            ("http://127.0.0.1:9090/api/v1/write", "give it as http://127.0.0.1:9090"),
        ] {
            let fault = address(url).unwrap_err();
            assert!(fault.contains(expected) && !fault.contains("secret"), "{url}: {fault}");
        }
    }
}
