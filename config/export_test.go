package config

import (
	"fmt"
	"strings"
)

// Markdown returns the table of docs/config.md.
func Markdown() []byte {
	var b strings.Builder
	b.WriteString("| key | default | what |\n| --- | --- | --- |\n")
	for _, k := range Keys() {
		fmt.Fprintf(&b, "| `%s` | %s | %s %s |\n", k.Name, code(k.Default), k.Doc, limits(k))
	}
	return []byte(b.String())
}

func code(s string) string {
	if s == "" {
		return "not set"
	}
	return "`" + s + "`"
}

func limits(k Key) string {
	want := k.want()
	if k.Type == Text {
		return "A string."
	}
	return "Takes " + strings.ReplaceAll(want, "\"", "`") + "."
}
