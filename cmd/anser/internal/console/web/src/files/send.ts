// Sends a file. XMLHttpRequest tells how much of a body was sent, which fetch does not.
import { ApiError } from "../api";
import { currentToken } from "../session";

export interface Sent {
	path: string;
	size: number;
	sha256: string;
}

export function send(path: string, file: File, signal: AbortSignal, progress: (share: number) => void): Promise<Sent> {
	return new Promise((resolve, reject) => {
		const r = new XMLHttpRequest();
		r.open("PUT", "api/" + path);
		r.setRequestHeader("Content-Type", "application/octet-stream");
		r.setRequestHeader("X-CSRF-Token", currentToken());
		r.upload.onprogress = (e) => progress(e.total ? e.loaded / e.total : 1);
		r.onload = () => {
			let body: { error?: string; advice?: string } & Partial<Sent> = {};
			try {
				body = JSON.parse(r.responseText);
			} catch {
				// An answer of a proxy.
			}
			if (r.status === 200) resolve(body as Sent);
			else reject(new ApiError(r.status, body.error ?? r.statusText, body.advice));
		};
		r.onerror = () => reject(new ApiError(0, ""));
		r.onabort = () => reject(new DOMException("", "AbortError"));
		signal.addEventListener("abort", () => r.abort());
		r.send(file);
	});
}
