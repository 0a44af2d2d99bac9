// Moves and zooms a drawing by the transforms of its element and of one group, with the mouse, fingers and buttons.
import { useCallback, useEffect, useRef } from "react";
import { type Layout, type Place, box } from "./layout";

const margin = 28;
const least = 0.12, largest = 3;

const farBelow = 0.7; // the scale from which on figures are not read easily

// nameSize returns the size of names at a scale at which figures cannot be read, in units of the drawing: they are about 12
// pixels high, as long as a box has room for them, in steps so that few scales draw the boxes anew. 0: figures can be read.
export function nameSize(k: number): number {
	if (k >= farBelow) return 0;
	return Math.min(Math.ceil(12 / k / 4) * 4, largestName);
}

const largestName = 36;
const readable = 12 / largestName; // the scale below which names are less than 12 pixels high

// fitted returns where a drawing is in a window of this size: all of it if whole is set, or if its names can be read then.
// Otherwise it is as large as they need, and shows the node with the focus, or else the left end, where the first callers are.
export function fitted(layout: Layout, size: { width: number; height: number }, whole: boolean, focus: string): { x: number; y: number; k: number } {
	const all = Math.min((size.width - 2 * margin) / layout.width, (size.height - 2 * margin) / layout.height, 1.15);
	if (whole || all >= readable) return { x: (size.width - layout.width * all) / 2, y: (size.height - layout.height * all) / 2, k: all };
	const k = readable, middle = (p: Place) => size.height / 2 - (p.y + box.h / 2) * k;
	const chosen = layout.places.get(focus);
	if (chosen) return { x: size.width / 2 - (chosen.x + box.w / 2) * k, y: middle(chosen), k };
	const first = [...layout.places.values()].filter((p) => p.x === 0);
	const y = first.reduce((sum, p) => sum + p.y, 0) / Math.max(first.length, 1);
	return { x: Math.max((size.width - layout.width * k) / 2, margin), y: middle({ x: 0, y }), k };
}

// useCamera tells with setSize how large names are: see nameSize.
export function useCamera(layout: Layout, focus: string, setSize: (size: number) => void) {
	const frame = useRef<HTMLDivElement>(null), svg = useRef<SVGSVGElement>(null), world = useRef<SVGGElement>(null);
	const at = useRef({ x: 0, y: 0, k: 1, moved: false }), whole = useRef(false), chosen = useRef(focus);
	chosen.current = focus;

	// show moves the drawing as a layer, which the compositor does without painting it; a new scale paints it.
	const show = useCallback(() => {
		const { x, y, k } = at.current;
		if (svg.current) svg.current.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
		const scale = `scale(${k.toFixed(4)})`;
		if (world.current?.getAttribute("transform") === scale) return;
		world.current?.setAttribute("transform", scale);
		setSize(nameSize(k));
	}, [setSize]);

	const fit = useCallback(() => {
		const size = frame.current?.getBoundingClientRect();
		if (!size?.width) return;
		at.current = { ...fitted(layout, size, whole.current, chosen.current), moved: false };
		show();
	}, [layout, show]);

	const fitWhole = useCallback(() => {
		whole.current = true;
		fit();
	}, [fit]);

	// zoomAt keeps a point of the window where it is.
	const zoomAt = useCallback((factor: number, px: number, py: number) => {
		const c = at.current, k = Math.min(Math.max(c.k * factor, Math.min(c.k, least)), largest);
		at.current = { x: px - ((px - c.x) * k) / c.k, y: py - ((py - c.y) * k) / c.k, k, moved: true };
		show();
	}, [show]);

	const zoom = useCallback((factor: number) => {
		const size = frame.current?.getBoundingClientRect();
		if (size) zoomAt(factor, size.width / 2, size.height / 2);
	}, [zoomAt]);

	useEffect(() => {
		const e = frame.current;
		if (!e) return;
		if (!at.current.moved) fit();
		const sizes = new ResizeObserver(() => at.current.moved || fit());
		sizes.observe(e);
		const fingers = new Map<number, { x: number; y: number }>();
		let dragged = 0;
		const place = (v: PointerEvent) => {
			const size = e.getBoundingClientRect();
			return { x: v.clientX - size.left, y: v.clientY - size.top };
		};
		const down = (v: PointerEvent) => {
			if (v.button !== 0) return;
			if (fingers.size === 0) dragged = 0;
			fingers.set(v.pointerId, place(v));
		};
		const move = (v: PointerEvent) => {
			const before = fingers.get(v.pointerId);
			if (!before) return;
			const now = place(v), dx = now.x - before.x, dy = now.y - before.y;
			dragged += Math.abs(dx) + Math.abs(dy);
			if (dragged < 5) return;
			if (!e.hasPointerCapture(v.pointerId)) e.setPointerCapture(v.pointerId);
			fingers.set(v.pointerId, now);
			if (fingers.size === 2) {
				const [other] = [...fingers].filter(([id]) => id !== v.pointerId).map(([, p]) => p);
				const was = Math.hypot(before.x - other.x, before.y - other.y), is = Math.hypot(now.x - other.x, now.y - other.y);
				if (was > 0) zoomAt(is / was, (now.x + other.x) / 2, (now.y + other.y) / 2);
				return;
			}
			at.current.x += dx;
			at.current.y += dy;
			at.current.moved = true;
			show();
		};
		const up = (v: PointerEvent) => fingers.delete(v.pointerId);
		const click = (v: MouseEvent) => {
			if (dragged >= 5) v.preventDefault(); // the end of a move, not a choice
		};
		const wheel = (v: WheelEvent) => {
			if (!v.ctrlKey && !v.metaKey) return;
			v.preventDefault();
			const size = e.getBoundingClientRect();
			zoomAt(Math.exp(-v.deltaY / 300), v.clientX - size.left, v.clientY - size.top);
		};
		const undragged = (v: Event) => v.preventDefault(); // links are not dragged
		e.addEventListener("pointerdown", down);
		e.addEventListener("pointermove", move);
		e.addEventListener("pointerup", up);
		e.addEventListener("pointercancel", up);
		e.addEventListener("click", click, true);
		e.addEventListener("wheel", wheel, { passive: false });
		e.addEventListener("dragstart", undragged);
		return () => {
			sizes.disconnect();
			e.removeEventListener("pointerdown", down);
			e.removeEventListener("pointermove", move);
			e.removeEventListener("pointerup", up);
			e.removeEventListener("pointercancel", up);
			e.removeEventListener("click", click, true);
			e.removeEventListener("wheel", wheel);
			e.removeEventListener("dragstart", undragged);
		};
	}, [fit, show, zoomAt]);

	return { frame, svg, world, fitWhole, zoom };
}
