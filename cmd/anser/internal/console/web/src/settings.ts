// What a viewer has chosen: the language and the colours. Both are kept in the browser.
import { useSyncExternalStore } from "react";
import { en, type Text } from "./text/en";
import { zh } from "./text/zh";

export type Language = "en" | "zh";
export type Theme = "system" | "light" | "dark";

interface Settings {
	language: Language;
	theme: Theme;
	dark: boolean; // what is shown
}

const texts: Record<Language, Text> = { en, zh };
const system = matchMedia("(prefers-color-scheme: dark)");

function load(key: string): string {
	try {
		return localStorage.getItem("anser-" + key) ?? "";
	} catch {
		return ""; // the browser keeps nothing
	}
}

function keep(key: string, value: string): void {
	try {
		localStorage.setItem("anser-" + key, value);
	} catch {
		// It holds for this visit.
	}
}

// languageOf returns the language of a link, of an earlier choice, or of the browser.
export function languageOf(link: string, chosen: string, browser: readonly string[]): Language {
	for (const wish of [link, chosen, ...browser]) {
		if (/^zh\b/i.test(wish)) return "zh";
		if (/^en\b/i.test(wish)) return "en";
	}
	return "en";
}

function first(): Settings {
	const link = new URLSearchParams(location.hash.split("?")[1] ?? "");
	const wish = link.get("theme") || load("theme");
	const theme: Theme = wish === "light" || wish === "dark" ? wish : "system";
	return { language: languageOf(link.get("lang") ?? "", load("language"), navigator.languages), theme, dark: false };
}

let settings = first();
const listeners = new Set<() => void>();

function set(next: Partial<Settings>): void {
	settings = { ...settings, ...next };
	settings.dark = settings.theme === "dark" || (settings.theme === "system" && system.matches);
	document.documentElement.lang = settings.language === "zh" ? "zh-CN" : "en";
	if (settings.theme === "system") delete document.documentElement.dataset.theme;
	else document.documentElement.dataset.theme = settings.theme;
	for (const f of listeners) f();
}

system.addEventListener("change", () => set({}));
set({});

export function setLanguage(language: Language): void {
	keep("language", language);
	set({ language });
}

export function setTheme(theme: Theme): void {
	keep("theme", theme);
	set({ theme });
}

function subscribe(f: () => void): () => void {
	listeners.add(f);
	return () => listeners.delete(f);
}

export const useSettings = (): Settings => useSyncExternalStore(subscribe, () => settings);

// useText returns the texts in the language of the viewer.
export const useText = (): Text => texts[useSettings().language];
