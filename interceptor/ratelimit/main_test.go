package ratelimit_test

import (
	"log/slog"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

// silent keeps the logs of what is expected to go wrong out of the output.
var silent = anser.Logger(slog.New(slog.DiscardHandler))
