// Package pingpb has the messages of the service that the tests of connectstubs call. Package
// pingpbconnect has its clients and handlers.
package pingpb

//go:generate env GOWORK=off go run -C ../../../internal/tools ./pbgen -root ../.. -connect connectstubs/internal/pingpb/ping.proto
