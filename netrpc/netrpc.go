package netrpc

import (
	"io"
	"net"
	"net/http"
	"net/rpc"
)

// The default paths of HandleHTTP.
const (
	DefaultRPCPath   = rpc.DefaultRPCPath
	DefaultDebugPath = rpc.DefaultDebugPath
)

// The types used by codecs and callers are net/rpc's own, so that code written for net/rpc can
// still be used.
type (
	// Request is the header of a call.
	Request = rpc.Request
	// Response is the header of a reply.
	Response = rpc.Response
	// Call is a call started by [Client.Go] or [Client.GoContext].
	Call = rpc.Call
	// ServerCodec reads requests and writes responses for a server. See [Server.ServeCodec].
	ServerCodec = rpc.ServerCodec
	// ClientCodec writes requests and reads responses for a client. See [NewClientWithCodec].
	ClientCodec = rpc.ClientCodec
	// ServerError is the text of an error returned by the server.
	ServerError = rpc.ServerError
)

// ErrShutdown is the error of calls on a client that was closed, or whose connection has ended. It
// is net/rpc's own.
var ErrShutdown = rpc.ErrShutdown

// DefaultServer is the server used by the package-level functions. Its fields can be set before it
// is used.
var DefaultServer = NewServer()

// Register adds the methods of rcvr to the [DefaultServer]. See [Server.Register].
func Register(rcvr any) error { return DefaultServer.Register(rcvr) }

// RegisterName adds the methods of rcvr to the [DefaultServer]. See [Server.RegisterName].
func RegisterName(name string, rcvr any) error { return DefaultServer.RegisterName(name, rcvr) }

// RegisterFunc adds a function to the [DefaultServer]. See [Server.RegisterFunc].
func RegisterFunc(name string, f any) error { return DefaultServer.RegisterFunc(name, f) }

// Accept serves the connections of lis with the [DefaultServer]. See [Server.Accept].
func Accept(lis net.Listener) { DefaultServer.Accept(lis) }

// ServeConn serves a connection with the [DefaultServer]. See [Server.ServeConn].
func ServeConn(conn io.ReadWriteCloser) { DefaultServer.ServeConn(conn) }

// ServeCodec serves a connection with the [DefaultServer]. See [Server.ServeCodec].
func ServeCodec(codec ServerCodec) { DefaultServer.ServeCodec(codec) }

// ServeRequest serves one request with the [DefaultServer]. See [Server.ServeRequest].
func ServeRequest(codec ServerCodec) error { return DefaultServer.ServeRequest(codec) }

// HandleHTTP registers the [DefaultServer] on http.DefaultServeMux, as net/rpc does, under
// [DefaultRPCPath] and [DefaultDebugPath]. See [Server.HandleHTTP], and [HandleHTTPMux] for
// another mux.
func HandleHTTP() { DefaultServer.HandleHTTP(DefaultRPCPath, DefaultDebugPath) }

// HandleHTTPMux registers the [DefaultServer] on mux under [DefaultRPCPath] and
// [DefaultDebugPath]. See [Server.HandleHTTPMux].
func HandleHTTPMux(mux *http.ServeMux) {
	DefaultServer.HandleHTTPMux(mux, DefaultRPCPath, DefaultDebugPath)
}
