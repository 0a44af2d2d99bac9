package command_test

import "testing"

func TestConsole(t *testing.T) {
	run(t, "console", "--listen", "0.0.0.0:0").expect(t, 2, "the console has no login", "ssh -L")
	run(t, "console", "--listen", "127.0.0.1").expect(t, 2, "has no port")
	run(t, "console", "--registry", "dns:///{service}.example:1").expect(t, 2, "the console needs a registry that can")
	run(t, "demo", "--console", "0.0.0.0:1", "--for", "1s").expect(t, 2, "the console has no login")
}
