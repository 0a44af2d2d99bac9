// Axes place values on pixels.
function niceStep(value) {
	const power = 10 ** Math.floor(Math.log10(value));
	return ([1, 2, 2.5, 5].find((m) => m * power >= value * 0.9999) || 10) * power;
}

// linear goes from 0 to most, with about as many ticks as there is room for, each apart pixels.
function linear(from, to, most, apart = 70) {
	const end = most > 0 ? most : 1;
	const step = niceStep(end / Math.max(2, Math.min(6, Math.abs(to - from) / apart)));
	const ticks = [];
	for (let value = 0; value <= end * 1.0001; value += step) ticks.push(value);
	return { ticks, at: (value) => from + ((to - from) * Math.min(Math.max(value, 0), end)) / end };
}

// logarithmic goes around least and most.
function logarithmic(from, to, least, most, apart = 70) {
	const low = (least > 0 && isFinite(least) ? least : 1) / 1.15;
	const high = (most > low ? most : low * 10) * 1.15;
	const decades = Math.log10(high / low);
	const room = Math.abs(to - from) / decades / apart; // of ticks in a decade
	const steps = room > 2.4 ? [1, 2, 5] : room > 1.4 ? [1, 3] : [1];
	const ticks = [];
	for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++) {
		for (const m of steps) {
			const value = m * 10 ** e;
			if (value >= low && value <= high) ticks.push(value);
		}
	}
	const at = (value) => from + ((to - from) * Math.log(Math.min(Math.max(value, low), high) / low)) / Math.log(high / low);
	return { ticks, at };
}

