// Colours of the style sheet for what is drawn on a canvas.
export function colour(name: string): string {
	const probe = document.createElement("i");
	probe.className = "probe";
	probe.style.color = `var(--${name})`;
	document.body.append(probe);
	const value = getComputedStyle(probe).color;
	probe.remove();
	return value;
}

// sharp sets the size of a canvas for the pixels of the screen, and returns what draws on it in units of the page.
export function sharp(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
	const ratio = devicePixelRatio || 1;
	canvas.width = Math.round(width * ratio);
	canvas.height = Math.round(height * ratio);
	canvas.style.width = width + "px";
	canvas.style.height = height + "px";
	const c = canvas.getContext("2d");
	c?.setTransform(ratio, 0, 0, ratio, 0, 0);
	return c;
}
