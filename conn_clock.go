package anser

import "github.com/anser-rpc/anser/internal/mono"

func nanotime() int64 { return mono.Now() }
