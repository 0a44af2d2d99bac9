// Numbers as people read them.
const formats = new Map();
function decimals(value, digits) {
	if (!formats.has(digits)) formats.set(digits, new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }));
	return formats.get(digits).format(value);
}

const missing = "–";
const known = (value) => value !== null && value !== undefined;
const threeDigits = (value) => decimals(value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
const trimmed = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

function duration(us, inUnits = threeDigits) {
	if (!known(us)) return missing;
	if (us >= 999500) return inUnits(us / 1e6) + " s";
	if (us >= 999.5) return inUnits(us / 1e3) + " ms";
	return inUnits(us) + " µs";
}
const durationTick = (us) => duration(us, (value) => trimmed(threeDigits(value)));

function count(value) {
	if (value >= 1e6) return trimmed(threeDigits(value / 1e6)) + "M";
	if (value >= 1e3) return trimmed(threeDigits(value / 1e3)) + "k";
	return trimmed(threeDigits(value));
}

const plural = (n, noun) => decimals(n, 0) + " " + noun + (n === 1 ? "" : "s");

// ordinal prints a rank: 1st.
function ordinal(n) {
	const teen = n % 100 > 10 && n % 100 < 14;
	return n + ((!teen && ["th", "st", "nd", "rd"][n % 10]) || "th");
}

