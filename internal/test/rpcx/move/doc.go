// Package move has the tests that move a service between rpcx and Anser, in the registries of rpcx.
package move
