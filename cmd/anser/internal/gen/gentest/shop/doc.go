// Package shop is generated from a protobuf contract with every kind of method.
package shop
