import type { Heat } from "../api";

// rowsOf returns the rows that have calls, with one more on each side.
export function rowsOf(h: Heat): [number, number] {
	let low = h.bounds.length, high = -1;
	for (const row of h.counts) {
		row?.forEach((n, i) => {
			if (n > 0) {
				low = Math.min(low, i);
				high = Math.max(high, i);
			}
		});
	}
	return high < 0 ? [0, h.bounds.length - 1] : [Math.max(low - 1, 0), Math.min(high + 1, h.bounds.length - 1)];
}
