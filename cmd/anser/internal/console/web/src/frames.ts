// Spreads work over frames, so that no frame is late, and tells what is in sight.

const budget = 3; // ms of a frame
const most = 8; // works of a frame, however fast the machine is
const first = new Map<object, () => void>(), then = new Map<object, () => void>();
let scheduled = false;

function run(): void {
	const end = performance.now() + budget;
	let n = 0;
	for (const queue of [first, then]) {
		for (const [key, work] of queue) {
			if (n === most || (n > 0 && performance.now() > end)) break;
			queue.delete(key);
			n++;
			work();
		}
	}
	scheduled = first.size + then.size > 0;
	if (scheduled) requestAnimationFrame(run);
}

// soon does some work in one of the next frames, instead of earlier work with the same key that was not done yet. What is
// urgent comes before all that is not.
export function soon(key: object, work: () => void, urgent = false): void {
	if (urgent) then.delete(key);
	if (urgent || first.has(key)) first.set(key, work);
	else then.set(key, work);
	if (scheduled) return;
	scheduled = true;
	requestAnimationFrame(run);
}

// never removes the work with a key.
export function never(key: object): void {
	first.delete(key);
	then.delete(key);
}

const visible = new WeakSet<Element>();
const wakers = new WeakMap<Element, () => void>();
let observer: IntersectionObserver | undefined;

// watchSight calls wake when an element comes into sight or near it, until the result is called.
export function watchSight(e: Element, wake: () => void): () => void {
	observer ??= new IntersectionObserver((list) => {
		for (const { target, isIntersecting } of list) {
			if (isIntersecting === visible.has(target)) continue;
			if (isIntersecting) {
				visible.add(target);
				wakers.get(target)?.();
			} else visible.delete(target);
		}
	}, { rootMargin: "60px" });
	wakers.set(e, wake);
	observer.observe(e);
	return () => {
		observer?.unobserve(e);
		wakers.delete(e);
		visible.delete(e);
	};
}

// inSight reports whether an element that is watched is in sight.
export const inSight = (e: Element): boolean => visible.has(e);
