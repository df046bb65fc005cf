// Which lines are in which plot of a chart.

import type { Line, Panel } from "./chart";
import type { Charts, Curve } from "./data";

/** One plot, or one for each group: then the baseline is in every one of them, in grey. */
export function panelsOf(charts: Charts, curves: Curve[]): Panel[] {
  const { groups, slots, variants, baseline } = charts;
  const isMeasured = (variant: number) =>
    curves[variant]?.mean.some((value) => value !== null) ?? false;
  const panels = groups.map((group): Panel => {
    const lines = group.members.flatMap((variant, place): Line[] => {
      const curve = curves[variant];
      if (!curve || (groups.length > 1 && !isMeasured(variant))) return [];
      return [{ label: group.labels[place] ?? "", slot: slots[variant] ?? null, curve }];
    });
    const own = baseline === null ? undefined : curves[baseline];
    const isElsewhere = baseline !== null && !group.members.includes(baseline);
    if (groups.length > 1 && lines.length > 0 && own && isElsewhere && isMeasured(baseline)) {
      lines.unshift({ label: variants[baseline] ?? "", slot: null, curve: own });
    }
    return { title: group.name, lines };
  });
  return panels.filter((panel) => panel.lines.length > 0);
}
