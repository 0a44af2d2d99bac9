// Differences of two texts by lines.

export interface Line {
	sign: " " | "+" | "-";
	text: string;
}

// diff returns the lines of both texts: the longest common ones once.
export function diff(before: string, after: string): Line[] {
	const a = lines(before), b = lines(after);
	const long = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
	for (let i = a.length - 1; i >= 0; i--) {
		for (let j = b.length - 1; j >= 0; j--) long[i][j] = a[i] === b[j] ? long[i + 1][j + 1] + 1 : Math.max(long[i + 1][j], long[i][j + 1]);
	}
	const out: Line[] = [];
	let i = 0, j = 0;
	while (i < a.length || j < b.length) {
		if (i < a.length && j < b.length && a[i] === b[j]) {
			out.push({ sign: " ", text: a[i++] });
			j++;
		} else if (j >= b.length || (i < a.length && long[i + 1][j] >= long[i][j + 1])) out.push({ sign: "-", text: a[i++] });
		else out.push({ sign: "+", text: b[j++] });
	}
	return out;
}

const most = 4000; // lines that are compared

const lines = (text: string): string[] => text.replace(/\n$/, "").split("\n").slice(0, most);
