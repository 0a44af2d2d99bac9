package collect

import (
	"testing"

	"github.com/anser-rpc/anser/ansertest"
)

func TestMain(m *testing.M) { ansertest.Main(m) }
