// Package kitextest is what Kitex generates from kitextest.thrift, which has the same types as
// testthrift.thrift of codec/thrift. It is run by hand, in the parent folder:
//
//	kitex -module github.com/anser-rpc/anser/codec/codectest/generated -gen-path . kitextest.thrift
package kitextest
