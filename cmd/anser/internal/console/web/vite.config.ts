// Builds the page. The names of the files have no hashes, so that the committed build changes in place; the server
// compares their content instead.
import { readdirSync, readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";

// bundled are the packages that the build contains.
const bundled = ["react", "react-dom", "scheduler", "uplot", "d3-force", "d3-dispatch", "d3-quadtree", "d3-timer", "yaml"];

// licences writes the licences of the packages into one file beside the page.
function licences(): Plugin {
	return {
		name: "licences",
		generateBundle() {
			const texts = bundled.map((name) => {
				const folder = `node_modules/${name}`;
				const { version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
				const file = readdirSync(folder).find((f) => /^licen[cs]e/i.test(f));
				if (!file) throw new Error(`${name} has no licence`);
				return `${name} ${version}\n\n${readFileSync(`${folder}/${file}`, "utf8").replaceAll("\r\n", "\n").trim()}\n`;
			});
			this.emitFile({ type: "asset", fileName: "licences.txt", source: texts.join("\n----\n\n") });
		},
	};
}

export default defineConfig({
	base: "./",
	plugins: [licences()],
	build: {
		outDir: process.env.OUT ?? "dist",
		emptyOutDir: true,
		target: "es2023",
		cssTarget: ["chrome123", "firefox128", "safari17.5"],
		modulePreload: { polyfill: false },
		assetsInlineLimit: 0,
		rolldownOptions: {
			output: { entryFileNames: "[name].js", chunkFileNames: "[name].js", assetFileNames: "[name][extname]" },
		},
	},
});
