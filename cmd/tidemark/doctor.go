package main

import (
	"github.com/spf13/cobra"
)

func (m *Main) doctorCommand() *cobra.Command { return &cobra.Command{Use: "doctor"} }
func (m *Main) demoCommand() *cobra.Command   { return &cobra.Command{Use: "demo"} }
