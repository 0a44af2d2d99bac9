package main

import (
	"encoding/json"

	"github.com/bytedance/sonic"
	goccy "github.com/goccy/go-json"

	"github.com/anser-rpc/anser/internal/benchpb"
)

func ofJSON(data *benchpb.Plain) []subject {
	one := func(module string, marshal func(any) ([]byte, error), unmarshal func([]byte, any) error) subject {
		return of("JSON, plain struct", module, data,
			func(_ []byte, m *benchpb.Plain) ([]byte, error) { return marshal(m) },
			func(data []byte, m *benchpb.Plain) error { return unmarshal(data, m) })
	}
	return []subject{
		one("", json.Marshal, json.Unmarshal),
		one("github.com/goccy/go-json", goccy.Marshal, goccy.Unmarshal),
		one("github.com/bytedance/sonic", sonic.Marshal, sonic.Unmarshal),
	}
}
