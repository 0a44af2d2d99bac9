// Package arith is what the kitex command generates from arith.thrift.
package arith
