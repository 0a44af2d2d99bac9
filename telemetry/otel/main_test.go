package otel_test

import (
	"testing"

	global "go.opentelemetry.io/otel"

	"github.com/anser-rpc/anser/ansertest"
)

func TestMain(m *testing.M) {
	global.SetErrorHandler(global.ErrorHandlerFunc(func(error) {})) // the collectors of some tests fail
	ansertest.Main(m)
}
