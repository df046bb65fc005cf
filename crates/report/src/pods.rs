//! The pods behind a Service as a table and in a sentence, the same in a terminal, in Markdown and on the page.

use dnslab_analysis::{PodFigures, ServicePods, Summary};

use crate::number::{self, NONE};

pub(crate) const HEADER: [&str; 9] = [
    "variant",
    "sockets",
    "pod",
    "node",
    "queries",
    "CPU/query",
    "peak memory",
    "from the cache",
    "throttled",
];

pub(crate) const LEGEND: &str = "What each pod behind the Service published, from just before the load to just after it, as \
     sums of the valid runs: queries of others are among them. kube-proxy sends all packets of one socket to one pod, so \
     few sockets are spread unevenly. Throttled: share of the periods of its CPU quota in which a pod had to wait, in the \
     worst run; kubelets count that every 10 to 15 s.";

/// The cells of each pod of each variant.
pub(crate) fn rows(summary: &Summary) -> Vec<[String; 9]> {
    let variants = summary.variants.iter();
    let asked = variants.filter_map(|variant| Some((&variant.name, variant.pods.as_ref()?)));
    let rows = asked.flat_map(|(name, service)| {
        let all: u64 = service.pods.iter().map(|pod| pod.queries).sum();
        service.pods.iter().map(move |pod| row(name, service, pod, all))
    });
    rows.collect()
}

fn row(variant: &str, service: &ServicePods, pod: &PodFigures, all: u64) -> [String; 9] {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
    let share = |part: u64, of: u64| number::percent(part as f64 / of.max(1) as f64, 0);
    let hits = pod.cache_hits.map(|hits| share(hits, pod.queries));
    [
        variant.to_owned(),
        number::count(service.sockets),
        pod.name.clone(),
        pod.node.clone(),
        format!("{} ({})", number::count(pod.queries), share(pod.queries, all)),
        or_none(pod.cpu_per_query_ns().map(number::duration)),
        number::octets(pod.peak_memory_octets),
        or_none(hits),
        or_none(pod.throttled_share.map(|share| number::percent(share, 0))),
    ]
}

/// How queries were spread, in a sentence; nothing if nobody knows, or there is one pod.
pub(crate) fn sentence(summary: &Summary) -> Option<String> {
    let spread = summary.variants.iter().filter_map(|variant| {
        let service = variant.pods.as_ref()?;
        let [least, greatest] = service.busiest?;
        let least = number::percent(least, 0);
        let greatest = number::percent(greatest, 0);
        let share = match least == greatest {
            true => greatest,
            false => format!("{} to {greatest}", least.trim_end_matches([' ', '%', '\u{a0}'])),
        };
        Some((service, share))
    });
    let spread: Vec<(&ServicePods, String)> = spread.collect();
    let pods = spread.iter().map(|(service, _)| service.pods.len()).max()?;
    // Where pods come and go, none of them had its share all the time.
    if pods < 2 || spread.iter().any(|(service, _)| service.changes > 0) {
        return None;
    }
    let mut shares: Vec<String> = Vec::new();
    for (service, share) in &spread {
        let sockets = number::counted(service.sockets, "socket", "sockets");
        let text = format!("{share} with {sockets}");
        if !shares.contains(&text) {
            shares.push(text);
        }
    }
    Some(format!("Of the queries the busiest of {pods} pods got {}.", shares.join(", ")))
}
