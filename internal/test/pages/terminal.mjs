// Draws what a command has printed on a terminal as SVG: text in the colours of its escape sequences, in a window.
const colours = ["#1c2128", "#f4776d", "#5fc77e", "#e0b356", "#6cb0ff", "#c39bf0", "#58c7c7", "#d7dde4", "#6b7682", "#ff9a91", "#7ee09a", "#f2cc77", "#93c6ff", "#d9b8ff", "#7fe0e0", "#ffffff"];
const paper = "#12171c", ink = "#d7dde4", faint = "#8b96a1", bar = "#1e252c";
const cell = 8.4, line = 18, size = 14, margin = 16, head = 34;

// cube returns a colour of the palette of 256.
function cube(n) {
	if (n < 16) return colours[n];
	if (n > 231) return grey(8 + (n - 232) * 10);
	const part = (v) => (v ? 55 + v * 40 : 0);
	return `rgb(${part(Math.floor((n - 16) / 36))},${part(Math.floor((n - 16) / 6) % 6)},${part((n - 16) % 6)})`;
}
const grey = (v) => `rgb(${v},${v},${v})`;

// select changes a style by the numbers of a sequence "CSI … m".
function select(style, numbers) {
	for (let i = 0; i < numbers.length; i++) {
		const n = numbers[i];
		if (n === 0) Object.keys(style).forEach((key) => delete style[key]);
		else if (n === 1) style.bold = true;
		else if (n === 2) style.faint = true;
		else if (n === 7) style.reverse = true;
		else if (n === 22) style.bold = style.faint = false;
		else if (n === 27) style.reverse = false;
		else if (n >= 30 && n <= 37) style.ink = colours[n - 30];
		else if (n >= 90 && n <= 97) style.ink = colours[n - 82];
		else if (n >= 40 && n <= 47) style.paper = colours[n - 40];
		else if (n === 39) style.ink = undefined;
		else if (n === 49) style.paper = undefined;
		else if (n === 38 || n === 48) {
			const key = n === 38 ? "ink" : "paper";
			if (numbers[i + 1] === 5) style[key] = cube(numbers[(i += 2)]);
			else if (numbers[i + 1] === 2) style[key] = `rgb(${numbers.slice(i + 2, (i += 4) + 1)})`;
		}
	}
}

// runs splits a line into texts of one style each.
function runs(text, style) {
	const list = [];
	let column = 0;
	for (const part of text.split(/(\x1b\[[\d;]*m)/)) {
		const sequence = part.match(/^\x1b\[([\d;]*)m$/);
		if (sequence) select(style, sequence[1].split(";").map(Number));
		else if (part) {
			const plain = part.replace(/[\x00-\x1f\x7f]/g, "");
			list.push({ column, text: plain, ...style });
			column += [...plain].length;
		}
	}
	return list;
}

const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");

// draw returns the SVG of the lines of a terminal with this number of columns. title is what the window is called.
export function draw(text, columns, title) {
	const lines = text.replace(/\s+$/, "").split("\n");
	const width = Math.round(columns * cell + 2 * margin), height = head + lines.length * line + margin;
	const out = [];
	const style = {};
	lines.forEach((text, row) => {
		const y = head + row * line;
		for (const r of runs(text, style)) {
			const length = [...r.text].length;
			const [front, back] = r.reverse ? [r.paper || paper, r.ink || ink] : [r.ink || (r.faint ? faint : ink), r.paper];
			if (back) out.push(`<rect x="${(margin + r.column * cell).toFixed(1)}" y="${y}" width="${(length * cell).toFixed(1)}" height="${line}" fill="${back}"/>`);
			// Words keep their columns whatever font there is.
			for (const word of r.text.matchAll(/\S+(?: \S+)*/g)) {
				const at = r.column + [...r.text.slice(0, word.index)].length, n = [...word[0]].length;
				const bold = r.bold ? ' font-weight="bold"' : "";
				out.push(`<text x="${(margin + at * cell).toFixed(1)}" y="${y + 13}" textLength="${(n * cell).toFixed(1)}" lengthAdjust="spacingAndGlyphs" fill="${front}"${bold}>${escape(word[0])}</text>`);
			}
		}
	});
	const dots = ["#f4776d", "#e0b356", "#5fc77e"].map((fill, i) => `<circle cx="${18 + i * 18}" cy="14" r="5" fill="${fill}"/>`).join("");
	return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="${size}">
<rect width="${width}" height="${height}" rx="8" fill="${paper}"/><path d="M0 8a8 8 0 0 1 8-8h${width - 16}a8 8 0 0 1 8 8v20H0z" fill="${bar}"/>${dots}
<text x="${width / 2}" y="19" text-anchor="middle" fill="${faint}" font-size="13">${escape(title)}</text>
${out.join("\n")}
</svg>
`;
}
