//! A flame graph without script: each frame is as wide as the CPU time that it and what it calls cost.
//!
//! The crate `inferno` draws such graphs with a script and a style sheet inside, which the page's Content Security
//! Policy stops, and its licence (CDDL-1.0) is none that `deny.toml` allows.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dnslab_record::CpuProfile;

use super::html::escape;
use crate::number;
use crate::words::cpu::part_name;

const WIDTH: f64 = 1_072.0;
const ROW: f64 = 18.0;
const LETTER: f64 = 6.2;

/// Frames narrower than this are left out: nobody could read them, and a page has bounds.
const LEAST_WIDTH: f64 = 1.0;

/// Deepest frame that is drawn.
const MAX_DEPTH: usize = 40;

/// Strongest colour: from this difference on, as a share of the whole.
const STRONG: f64 = 0.05;
/// Shades of a colour in the style sheet.
const SHADES: f64 = 4.0;

pub(super) const HINT: &str = "Width: CPU time for each query, of a part at the bottom, then of its libraries, \
    functions and, in the kernel, of what these call. Colour, where two variants are compared: red costs more than in \
    the other variant, blue less. Point at a frame for its figures.";

/// A frame with what it calls.
#[derive(Debug, Default)]
struct Node {
    /// CPU time for each query with all that is called, nanoseconds: of the variant, and of the one that it is
    /// compared with.
    ns: [f64; 2],
    called: BTreeMap<String, Node>,
}

impl Node {
    fn add(&mut self, Cost { profile, query_ns }: Cost<'_>, side: usize) {
        let of_sample = query_ns / profile.samples.max(1) as f64;
        for stack in &profile.stacks {
            let ns = stack.samples as f64 * of_sample;
            self.ns[side] += ns;
            let mut at = &mut *self;
            // The library of a part of the kernel is the kernel.
            let frames = stack.frames.iter().skip(usize::from(stack.part.is_kernel()));
            let frames = frames.filter_map(|name| profile.names.get(*name as usize));
            let names = [part_name(stack.part)].into_iter().chain(frames.map(String::as_str));
            for name in names.take(MAX_DEPTH) {
                if !at.called.contains_key(name) {
                    at.called.insert(name.to_owned(), Self::default());
                }
                at = at.called.get_mut(name).expect("it is there now");
                at.ns[side] += ns;
            }
        }
    }

    /// Frames on top of each other, itself included, of those that are drawn.
    fn depth(&self, scale: f64) -> usize {
        let drawn = self.called.values().filter(|node| node.ns[0] * scale >= LEAST_WIDTH);
        1 + drawn.map(|node| node.depth(scale)).max().unwrap_or(0)
    }
}

/// Where the CPU time of a variant goes.
#[derive(Clone, Copy)]
pub(super) struct Cost<'a> {
    pub(super) profile: &'a CpuProfile,
    /// CPU time for each query, nanoseconds.
    pub(super) query_ns: f64,
}

/// The graph of a variant, coloured by the difference from another one if there is one.
pub(super) fn graph(own: Cost<'_>, other: Option<Cost<'_>>) -> String {
    let mut root = Node::default();
    root.add(own, 0);
    other.into_iter().for_each(|other| root.add(other, 1));
    let scale = WIDTH / root.ns[0].max(1.0);
    let height = root.depth(scale) as f64 * ROW;
    let drawing = Drawing { scale, height, whole: root.ns[0], is_difference: other.is_some() };
    let mut svg = format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Flame graph\">\n\
         <svg class=\"picture flame\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Flame graph\">\n"
    );
    drawing.push(&mut svg, &own.profile.variant, &root, 0.0, 0);
    svg.push_str("</svg>\n</div>\n");
    svg
}

struct Drawing {
    /// Pixels for each nanosecond.
    scale: f64,
    height: f64,
    /// Nanoseconds of all.
    whole: f64,
    is_difference: bool,
}

impl Drawing {
    /// Draws a frame at a place from the left and at a depth, then what it calls.
    fn push(&self, svg: &mut String, name: &str, node: &Node, x: f64, depth: usize) {
        let width = node.ns[0] * self.scale;
        if width < LEAST_WIDTH {
            return;
        }
        let y = self.height - (depth + 1) as f64 * ROW;
        let share = number::share(node.ns[0] / self.whole);
        let mut text = format!("{name}: {}, {share}", number::duration(node.ns[0]));
        if self.is_difference {
            let difference = node.ns[0] - node.ns[1];
            let sign = if difference < 0.0 { "-" } else { "+" };
            let _ = write!(text, ", {sign}{}", number::duration(difference.abs()));
        }
        let _ = write!(
            svg,
            "<g class=\"{}\"><title>{}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{:.1}\"/>",
            self.shade(node, depth),
            escape(&text),
            ROW - 1.0
        );
        let letters = ((width - 6.0) / LETTER) as usize;
        if letters >= 3 {
            let text = super::picture::shortened(name, letters);
            let _ = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x + 3.0,
                y + 12.5,
                escape(&text)
            );
        }
        svg.push_str("</g>\n");
        let mut at = x;
        for (name, called) in &node.called {
            self.push(svg, name, called, at, depth + 1);
            at += called.ns[0] * self.scale;
        }
    }

    /// The class of a colour: `more` or `less` with a number from 1 to 4.
    fn shade(&self, node: &Node, depth: usize) -> String {
        if !self.is_difference {
            return format!("plain{}", depth % 2);
        }
        let difference = (node.ns[0] - node.ns[1]) / self.whole / STRONG;
        let shade = (difference.abs() * SHADES).round().min(SHADES);
        match (shade > 0.0, difference > 0.0) {
            (false, _) => "same".to_owned(),
            (true, true) => format!("more{shade}"),
            (true, false) => format!("less{shade}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use dnslab_record::{CostPart, StackSamples};

    use super::*;

    fn profile(variant: &str, stacks: &[(CostPart, &[u32], u64)]) -> CpuProfile {
        CpuProfile {
            variant: variant.to_owned(),
            samples: stacks.iter().map(|(_, _, samples)| samples).sum(),
            names: ["kernel", "tcp_sendmsg", "</title><script>"].map(str::to_owned).to_vec(),
            stacks: stacks
                .iter()
                .map(|(part, frames, samples)| StackSamples {
                    part: *part,
                    frames: frames.to_vec(),
                    samples: *samples,
                })
                .collect(),
            ..CpuProfile::default()
        }
    }

    fn cost(profile: &CpuProfile, query_ns: f64) -> Cost<'_> {
        Cost { profile, query_ns }
    }

    #[test]
    fn widths_are_times_and_names_cannot_leave_their_element() {
        use CostPart::{KernelNetwork, Tls};
        let own = profile("dot", &[(KernelNetwork, &[0, 1], 60), (Tls, &[2], 40)]);
        let other = profile("udp", &[(KernelNetwork, &[0, 1], 100)]);
        let svg = graph(cost(&own, 10_000.0), Some(cost(&other, 6_000.0)));
        assert!(
            svg.contains(
                "<title>dot: 10.0 us, 100 %, +4.00 us</title>".replace(" %", "\u{a0}%").as_str()
            ),
            "{svg}"
        );
        assert!(svg.contains("tcp_sendmsg: 6.00 us"), "{svg}");
        assert!(svg.contains("class=\"same\"><title>kernel: network: 6.00 us"), "{svg}");
        assert!(svg.contains("class=\"more4\"><title>TLS: 4.00 us"), "{svg}");
        assert!(!svg.contains("<script>") && svg.contains("&lt;script&gt;"), "{svg}");
        assert!(!svg.contains("style=") && !svg.contains("href"), "{svg}");
        // Variant, part, function.
        assert!(svg.contains("viewBox=\"0 0 1072 54\""), "{svg}");
    }

    #[test]
    fn what_is_too_narrow_is_left_out() {
        let own = profile("a", &[(CostPart::Tls, &[0], 1_000_000), (CostPart::Rest, &[1], 1)]);
        let svg = graph(cost(&own, 1_000.0), None);
        assert!(!svg.contains("tcp_sendmsg") && svg.contains(">kernel: 1.00 us"), "{svg}");
        assert!(svg.contains("class=\"plain0\""), "{svg}");
        assert!(!graph(cost(&CpuProfile::default(), 0.0), None).contains("NaN"));
    }
}
