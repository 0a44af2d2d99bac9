// The login of consoles that need one.
import { useState } from "react";
import { ApiError, ask } from "../api";
import { Field, Outcome, useDoing } from "../operate/common";
import { refreshSession, useViewer } from "../session";
import { useText } from "../settings";

export function Login({ again }: { again: () => void }) {
	const t = useText();
	const { session } = useViewer();
	const doing = useDoing();
	const [user, setUser] = useState(""), [password, setPassword] = useState("");
	if (session?.login === "oidc") return <div className="login card"><h1>{t.logIn}</h1><p><a className="button" href={session.log_in?.path ?? "api/oidc/login"}>{t.logInAt}</a></p></div>;
	if (session?.login === "proxy") return <div className="login card"><h1>{t.logIn}</h1><p>{t.logInProxy}</p></div>;
	return (
		<form className="login card" onSubmit={(e) => {
			e.preventDefault();
			doing.run(async () => {
				try {
					await ask("login", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ user, password }) });
				} finally {
					setPassword("");
				}
				await refreshSession();
				again();
			});
		}}>
			<h1>{t.logIn}</h1>
			<Field label={t.user}><input autoComplete="username" required autoFocus value={user} onChange={(e) => setUser(e.target.value)} /></Field>
			<Field label={t.password}><input type="password" autoComplete="current-password" required value={password} onChange={(e) => setPassword(e.target.value)} /></Field>
			<button type="submit" className="main" disabled={doing.busy}>{t.logIn}</button>
			{session?.log_in_provider ? <p><a className="button" href={session.log_in_provider.path}>{t.logInAt}</a></p> : null}
			{doing.error instanceof ApiError ? <Outcome of={doing} /> : null}
		</form>
	);
}
