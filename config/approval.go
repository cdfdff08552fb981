package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/approval"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Approval says which tool calls the owner is asked about.
type Approval struct {
	Default       string
	Rules         []approval.Rule
	ExpiryMinutes int
}

// Policy is what sessions decide by.
func (a Approval) Policy() approval.Policy {
	return approval.Policy{Default: approval.Action(a.Default), Rules: a.Rules}
}

// ruleError is what is wrong with one of the rules, in words that say how to put it right.
type ruleError struct{ text string }

func (e *ruleError) Error() string { return e.text }

// rules reads a list of rules. A member that a rule has not is a mistake: it would do nothing, where it was meant to
// keep a call from running.
func rules(v any) ([]approval.Rule, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, errors.New("misfit")
	}
	if len(list) > approval.MaxRules {
		return nil, &ruleError{fmt.Sprintf("%d rules, at most %d", len(list), approval.MaxRules)}
	}
	out := make([]approval.Rule, len(list))
	for i, e := range list {
		if err := known(e, "tool", "when", "action"); err != nil {
			return nil, &ruleError{fmt.Sprintf("rule %d: %s", i+1, err)}
		}
		when, _ := e.(map[string]any)["when"].([]any)
		for n, c := range when {
			if err := known(c, "path", "op", "value"); err != nil {
				return nil, &ruleError{fmt.Sprintf("rule %d: when[%d]: %s", i+1, n, err)}
			}
		}
		raw, err := json.Marshal(e)
		if err == nil {
			err = json.Unmarshal(raw, &out[i])
		}
		if err != nil {
			return nil, &ruleError{fmt.Sprintf("rule %d: want texts, and when as a list of conditions", i+1)}
		}
		if err := out[i].Validate(); err != nil {
			return nil, &ruleError{fmt.Sprintf("rule %d: %s", i+1, strings.TrimSuffix(err.Error(), ": "+tidemark.ErrInvalid.Error()))}
		}
	}
	return out, nil
}

// known reports a member of an object that is none of the names.
func known(v any, names ...string) error {
	o, ok := v.(map[string]any)
	if !ok {
		return errors.New("want an object { … }")
	}
	for name := range o {
		if !contains(names, name) {
			return fmt.Errorf("unknown member %.40q; it has %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}
