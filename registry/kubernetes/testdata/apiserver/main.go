// Command apiserver is the API server of Kubernetes itself, for the tests of package kubernetes that
// "make test-k8s" runs. It is a module of its own, since it needs more than the rest of the repository
// together.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
