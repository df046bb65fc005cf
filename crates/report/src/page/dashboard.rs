//! The page of `dnslab dashboard`: the dashboards for Grafana, drawn by a script that asks a Prometheus.

use serde_json::{Value, json};

use super::html::{escape, escape_json};
use super::shell::shell;

const SCRIPT: &str = include_str!("../../page/dist/dashboard.js");
const SCRIPT_HASH: &str = include_str!("../../page/dist/dashboard.js.sha256");

/// In the order of the page.
const DASHBOARDS: [&str; 4] = [
    include_str!("../../../../grafana/load.json"),
    include_str!("../../../../grafana/server.json"),
    include_str!("../../../../grafana/variants.json"),
    include_str!("../../../../grafana/idm.json"),
];

/// A page that shows what a Prometheus has of dnslab's metrics.
///
/// `prometheus` is its URL, without a slash at its end. The page asks it and nobody else, in the browser of its reader.
#[must_use]
pub fn dashboard_page(prometheus: &str, version: &str) -> String {
    let dashboards = DASHBOARDS.map(|text| -> Value {
        serde_json::from_str(text).expect("a test holds them to their schema")
    });
    let data = json!({ "prometheus": prometheus, "dashboards": dashboards }).to_string();
    let (address, data) = (escape(prometheus), escape_json(&data));
    let body = format!(
        "<header><p><b>dnslab</b> <span>dashboards</span></p>\
         <button type=\"button\" id=\"theme\" hidden>Dark</button></header>\n\
         <main>\n<div class=\"controls\"><nav id=\"tabs\" aria-label=\"Dashboards\"></nav></div>\n\
         <p class=\"hint\" id=\"about\"></p>\n\
         <div class=\"controls\"><span id=\"variables\"></span>\
         <label>The last <select id=\"range\"></select></label>\
         <label>until <input type=\"datetime-local\" step=\"1\" id=\"until\" title=\"empty: now\"></label>\
         <label><input type=\"checkbox\" id=\"again\" checked> Ask every 5 s</label>\
         <span id=\"as-of\"></span></div>\n\
         <p id=\"problem\" role=\"alert\" hidden></p>\n\
         <noscript><p>This page is drawn by its script: allow it.</p></noscript>\n</main>\n\
         <footer>dnslab {version}, asks {address}</footer>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script>{SCRIPT}</script>\n",
        version = escape(version),
    );
    let sources = format!("'{}'; connect-src {}", SCRIPT_HASH.trim(), escape(source(prometheus)));
    shell("dnslab dashboards", &sources, &body).replace("<body>", "<body class=\"asking\">")
}

/// What a Content Security Policy calls the server of a URL.
fn source(url: &str) -> &str {
    let begin = url.find("://").map_or(0, |scheme| scheme + 3);
    let host = &url[begin..];
    // A policy has no form for an address of IPv6: then the scheme has to do.
    // https://www.w3.org/TR/CSP3/#grammardef-host-source
    if host.starts_with('[') {
        return &url[..begin - 2];
    }
    &url[..begin + host.find('/').unwrap_or(host.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_asks_its_prometheus_alone() {
        for (url, expected) in [
            ("http://127.0.0.1:9090", "http://127.0.0.1:9090"),
            ("https://metrics.example.net/prometheus", "https://metrics.example.net"),
            ("http://[::1]:9090", "http:"),
        ] {
            assert_eq!(source(url), expected);
            let page = dashboard_page(url, "0.1.0");
            assert!(page.contains(&format!("; connect-src {expected}; style-src")), "{url}");
            assert!(page.contains("{\"dashboards\":["), "{url}");
        }
        let page = dashboard_page("http://a.example/<script>", "0.1.0");
        assert!(!page.contains("/<script>"), "{page}");
    }
}
