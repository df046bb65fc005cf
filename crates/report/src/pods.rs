//! The pods behind a Service as a table and in a sentence, the same in a terminal, in Markdown and on the page.

use std::collections::BTreeMap;

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
    let share = |part: u64, whole: u64| number::percent(part as f64 / whole.max(1) as f64, 0);
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

/// How queries were spread, in a sentence; nothing if nobody knows, there is one pod, pods came and went, or Services with
/// several pods differ.
pub(crate) fn sentence(summary: &Summary) -> Option<String> {
    let services = summary.variants.iter().filter_map(|variant| variant.pods.as_ref());
    let several = services.filter(|service| service.pods.len() > 1);
    let seen: Vec<(&ServicePods, [f64; 2])> =
        several.filter_map(|service| Some((service, service.busiest?))).collect();
    let (first, _) = seen.first()?;
    let pods = first.pods.len();
    let are_alike = |service: &ServicePods| {
        service.service == first.service && service.pods.len() == pods && service.changes == 0
    };
    if !seen.iter().all(|(service, _)| are_alike(service)) {
        return None;
    }
    // Those of as many sockets are alike.
    let mut by_sockets: BTreeMap<u64, [f64; 2]> = BTreeMap::new();
    for (service, [least, greatest]) in seen {
        let known = by_sockets.entry(service.sockets).or_insert([least, greatest]);
        *known = [known[0].min(least), known[1].max(greatest)];
    }
    let shares = by_sockets.iter().map(|(sockets, [least, greatest])| {
        let [least, greatest] = [*least, *greatest].map(|share| (100.0 * share).round());
        let share = match least == greatest {
            true => format!("{greatest} %"),
            false => format!("{least} to {greatest} %"),
        };
        format!("{share} with {}", number::counted(*sockets, "socket", "sockets"))
    });
    let shares: Vec<String> = shares.collect();
    Some(format!("Of the queries the busiest of {pods} pods got {}.", shares.join(", ")))
}

#[cfg(test)]
mod tests {
    use dnslab_analysis::VariantSummary;

    use super::*;

    fn variant(sockets: u64, busiest: [f64; 2]) -> VariantSummary {
        let pods = vec![PodFigures::default(), PodFigures::default()];
        let pods = ServicePods { sockets, busiest: Some(busiest), pods, ..ServicePods::default() };
        VariantSummary { pods: Some(pods), ..VariantSummary::default() }
    }

    #[test]
    fn variants_with_as_many_sockets_are_one() {
        let variants =
            vec![variant(64, [0.51, 0.55]), variant(2, [0.5, 1.0]), variant(64, [0.604, 0.604])];
        let mut summary = Summary { variants, ..Summary::default() };
        let said = "Of the queries the busiest of 2 pods got 50 to 100 % with 2 sockets, 51 to 60 % with 64 sockets.";
        assert_eq!(sentence(&summary).as_deref(), Some(said));
        // A Service with one pod spreads nothing.
        let mut one = variant(64, [1.0, 1.0]);
        one.pods.as_mut().unwrap().pods.truncate(1);
        summary.variants.push(one);
        assert_eq!(sentence(&summary).as_deref(), Some(said));
        summary.variants[0].pods.as_mut().unwrap().changes = 1;
        assert_eq!(sentence(&summary), None);
    }
}
