package colfertest

//go:generate go tool colf -b .. go message.colf
//go:generate gofmt -w Colfer.go
