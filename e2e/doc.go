// Package e2e holds tests alone: servers, clients and a registry in processes of their own, which
// are restarted, cut off and killed while calls are made. The tests run their own binary again for
// every process; see TestMain.
package e2e
