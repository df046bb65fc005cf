//! Where the CPU time of the servers goes: a stacked bar for each variant, the same as a table, and flame graphs.

use std::fmt::Write as _;

use dnslab_analysis::{CostSummary, VariantCost};
use dnslab_record::{CostPart, CpuProfiles};

use super::flame;
use super::html::escape;
use super::picture::{Ticks, push_text, shortened, trimmed};
use crate::number;
use crate::words::cpu::{LEGEND, cpu_texts, difference_text, part_name, part_of, table};

/// Pairs of variants with a flame graph: each may have 60 kB.
const MAX_FLAMES: usize = 12;

struct Layout {
    /// Class of the picture, by which the style sheet shows one layout only.
    class: &'static str,
    width: f64,
    longest_name: usize,
}

const LAYOUTS: [Layout; 2] = [
    Layout { class: "broad", width: 1_072.0, longest_name: 28 },
    Layout { class: "narrow", width: 368.0, longest_name: 15 },
];
const LETTER: f64 = 8.4;
const ROW: f64 = 38.0;
const BAR: f64 = 22.0;
const AXIS: f64 = 22.0;

/// Nothing if no server was to be sampled.
pub(super) fn section(cost: Option<&CostSummary>, profiles: Option<&CpuProfiles>) -> String {
    let Some(cost) = cost else { return String::new() };
    let mut html = String::from("<section id=\"cpu\">\n<h2>Where the CPU time goes</h2>\n");
    for text in cpu_texts(cost) {
        let _ = writeln!(html, "<p>{}</p>", escape(&text));
    }
    for difference in cost.differences.iter().filter(|difference| !difference.is_certain) {
        let _ = writeln!(
            html,
            "<p class=\"hint\">Whether {} costs more or less CPU time than {} is not certain.</p>",
            escape(&difference.variant),
            escape(&difference.against)
        );
    }
    if cost.variants.is_empty() {
        html.push_str("</section>\n");
        return html;
    }
    html.push_str(&bars(cost));
    html.push_str(&figures(cost));
    if let Some(profiles) = profiles {
        html.push_str(&flames(cost, profiles));
    }
    html.push_str("</section>\n");
    html
}

fn bars(cost: &CostSummary) -> String {
    let has =
        |part: &CostPart| cost.variants.iter().any(|variant| part_of(variant, *part).is_some());
    let keys: String = CostPart::ALL
        .into_iter()
        .filter(has)
        .map(|part| {
            format!("<span><i class=\"key part-{}\"></i>{}</span>", part.name(), part_name(part))
        })
        .collect();
    format!(
        "<figure class=\"drawn\" id=\"cpu-parts\">\n<figcaption><h3>CPU time of the server for each query</h3>\
         <p class=\"parts\">{keys}</p></figcaption>\n{}</figure>\n",
        LAYOUTS.iter().map(|layout| picture(cost, layout)).collect::<String>()
    )
}

fn picture(cost: &CostSummary, layout: &Layout) -> String {
    let longest =
        cost.variants.iter().map(|variant| variant.variant.chars().count()).max().unwrap_or(0);
    let left = longest.min(layout.longest_name) as f64 * LETTER + 10.0;
    let right = layout.width - 64.0;
    let whole = |cost: &VariantCost| cost.cpu_per_query_ns.value;
    let most = cost.variants.iter().map(whole).fold(f64::MIN_POSITIVE, f64::max);
    let x = |ns: f64| left + ns / most * (right - left);
    let end = cost.variants.len() as f64 * ROW;
    let mut svg = String::new();
    for tick in Ticks::linear(most, if layout.class == "broad" { 8 } else { 3 }).places {
        let at = x(tick);
        let _ = write!(
            svg,
            "<line class=\"mark\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"0\" y2=\"{end:.1}\"/>"
        );
        let label = if tick == 0.0 { "0".to_owned() } else { trimmed(&number::duration(tick)) };
        push_text(&mut svg, "end", at, end + 9.0, "middle", &label);
    }
    for (place, variant) in cost.variants.iter().enumerate() {
        let middle = (place as f64 + 0.5) * ROW;
        let name = shortened(&variant.variant, layout.longest_name);
        push_text(&mut svg, "name", 0.0, middle, "start", &name);
        let figure = number::duration(whole(variant));
        // Inside of the bar, figures are in the unit of the one behind it.
        let unit_ns = match figure.split_once(' ') {
            Some((_, "ns")) => 1.0,
            Some((_, "us")) => 1e3,
            Some((_, "ms")) => 1e6,
            _ => 1e9,
        };
        let mut before = 0.0;
        for part in &variant.parts {
            let (from, to) = (x(before), x(before + part.ns.value));
            before += part.ns.value;
            let figure = number::duration(part.ns.value);
            let title = format!(
                "{}, {}: {figure}, {} ({} to {})",
                variant.variant,
                part_name(part.part),
                number::share(part.share),
                number::duration(part.ns.low),
                number::duration(part.ns.high)
            );
            let _ = write!(
                svg,
                "<g class=\"part-{}\"><title>{}</title><rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" \
                 height=\"{BAR}\"/>",
                part.part.name(),
                escape(&title),
                middle - BAR / 2.0,
                (to - from).max(0.0)
            );
            let short = format!("{:.1}", part.ns.value / unit_ns);
            if to - from > short.chars().count() as f64 * LETTER + 6.0 {
                push_text(&mut svg, "inside", (from + to) / 2.0, middle, "middle", &short);
            }
            svg.push_str("</g>");
        }
        push_text(&mut svg, "figure", x(before) + 6.0, middle, "start", &figure);
        svg.push('\n');
    }
    format!(
        "<svg class=\"picture parts {}\" viewBox=\"0 0 {} {:.0}\" role=\"img\" aria-label=\"Stacked bars; the \
         table below has the same figures\">\n{svg}</svg>\n",
        layout.class,
        layout.width,
        end + AXIS
    )
}

fn figures(cost: &CostSummary) -> String {
    let table = table(cost);
    let mut html = String::from(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"CPU time by part\">\n\
         <table class=\"figures\">\n<thead><tr>",
    );
    let head = |heading: &String| format!("<th scope=\"col\">{}</th>", escape(heading));
    html.extend(table.header.iter().map(head));
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        let _ = writeln!(
            html,
            "<tr><th scope=\"row\">{}</th>{}</tr>",
            escape(&row[0]),
            row[1..].iter().map(|cell| cell_html(cell)).collect::<String>()
        );
    }
    let samplers: Vec<String> = cost.variants.iter().map(sampler).collect();
    let mut samplers: Vec<&str> = samplers.iter().map(String::as_str).collect();
    samplers.dedup();
    let _ = write!(
        html,
        "</tbody>\n</table>\n</div>\n<p class=\"hint\">{} Sampled by {}.</p>\n",
        escape(LEGEND),
        escape(&samplers.join("; "))
    );
    html
}

/// A figure, with what only accompanies it below.
fn cell_html(cell: &str) -> String {
    let at = [" \u{b1} ", " (", ", "].into_iter().find_map(|divider| cell.find(divider));
    match at.map(|at| cell.split_at(at)) {
        None => format!("<td>{}</td>", escape(cell)),
        Some((figure, aside)) => {
            let aside = aside.trim_start_matches([',', ' ']);
            format!("<td>{}<small>{}</small></td>", escape(figure), escape(aside))
        }
    }
}

fn sampler(variant: &VariantCost) -> String {
    format!("{}, {} Hz", variant.sampler, variant.rate_hz)
}

/// A flame graph for each pair that is compared, and one for each variant that is in none of them.
fn flames(cost: &CostSummary, profiles: &CpuProfiles) -> String {
    let flame_of = |name: &str| {
        let profile = profiles.profiles.iter().find(|profile| profile.variant == name)?;
        let cost = cost.variants.iter().find(|variant| variant.variant == name)?;
        Some(flame::Cost { profile, query_ns: cost.cpu_per_query_ns.value })
    };
    let mut html = String::new();
    let is_compared =
        |own: &&VariantCost| cost.differences.iter().any(|pair| pair.variant == own.variant);
    for alone in cost.variants.iter().filter(|variant| !is_compared(variant)).take(MAX_FLAMES) {
        let Some(own) = flame_of(&alone.variant) else { continue };
        let title = format!("Flame graph of {}", alone.variant);
        html.push_str(&folded(&title, "", &flame::graph(own, None)));
    }
    for pair in cost.differences.iter().take(MAX_FLAMES) {
        let (Some(own), Some(other)) = (flame_of(&pair.variant), flame_of(&pair.against)) else {
            continue;
        };
        let title = format!("Flame graph of {} against {}", pair.variant, pair.against);
        html.push_str(&folded(&title, &difference_text(pair), &flame::graph(own, Some(other))));
    }
    html
}

fn folded(title: &str, text: &str, graph: &str) -> String {
    let text = match text {
        "" => String::new(),
        text => format!("<p>{}</p>\n", escape(text)),
    };
    format!(
        "<details class=\"flames\"><summary>{}</summary>\n{text}<p class=\"hint\">{}</p>\n{graph}</details>\n",
        escape(title),
        escape(flame::HINT)
    )
}
