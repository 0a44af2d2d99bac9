// Package pingpbconnect has the clients and handlers that protoc-gen-connect-go generates for the
// service of package pingpb.
package pingpbconnect
