package ratelimit_test

import (
	"log/slog"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

// silent suppresses the logs of expected errors.
var silent = anser.Logger(slog.New(slog.DiscardHandler))
