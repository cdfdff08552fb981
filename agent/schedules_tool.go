package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/schedule"
)

// ToolSchedule is the tool by which the owner's conversations make schedules.
const ToolSchedule = "schedule"

// schedules reports whether a scope may make schedules: the owner's conversations, but not the runs of schedules
// themselves, which could make ever more.
func schedules(scope tidemark.Scope) bool {
	return scope.Owner && scope.Key.Local() && scope.Key.Channel() != tidemark.ChannelSchedule && scope.Key.Channel() != "proxy"
}

// scheduleTool is its schema.
func scheduleTool() tidemark.Tool {
	return tidemark.Tool{
		Name: ToolSchedule, Idempotent: true,
		Description: "Reminders and repeated work: you are asked prompt again in this conversation at that time, and the answer is sent to the owner.",
		InputSchema: schema(`"do":{"enum":["add","list","remove"]},"when":{"type":"string","description":"in 20m, tomorrow 09:00, 2026-12-01 09:00, every 2h, or cron: 0 8 * * 1-5"},"prompt":{"type":"string"},"id":{"type":"string","description":"to remove"}`, "do"),
	}
}

// scheduleCall runs it.
func (a *Agent) scheduleCall(ctx context.Context, scope tidemark.Scope, call string, in input) (string, error) {
	if a.cfg.NoSchedules || !schedules(scope) {
		return "", fmt.Errorf("schedules are for the owner's own conversations: %w", tidemark.ErrForbidden)
	}
	switch in.Do {
	case "add":
		return a.addByTool(ctx, scope, call, in)
	case "list":
		return a.listByTool(ctx)
	case "remove":
		err := a.RemoveSchedule(ctx, strings.TrimSpace(in.ID))
		return "Removed " + in.ID + ".", err
	}
	return "", fmt.Errorf("do %.20q: want add, list or remove: %w", in.Do, tidemark.ErrInvalid)
}

func (a *Agent) addByTool(ctx context.Context, scope tidemark.Scope, call string, in input) (string, error) {
	to := ToOwner
	if !scope.Main() {
		to = "" // the answer is where it was asked for
	}
	s, err := a.add(ctx, Schedule{Spec: schedule.Words(in.When), Prompt: in.Prompt, Session: string(scope.Key.Root()), To: to},
		string(tidemark.HashOf([]byte(strings.Join([]string{string(scope.Key), call, in.When, in.Prompt}, "\x00")))))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Schedule %s: %s, next %s.", s.ID, s.plan, stamp(s.Next)), nil
}

func (a *Agent) listByTool(ctx context.Context) (string, error) {
	all, err := a.Schedules(ctx)
	if err != nil {
		return "", err
	}
	const most, long = 50, 120
	var b strings.Builder
	for _, s := range all {
		if s.State == ScheduleDone {
			continue
		}
		if b.Len() > most*long {
			b.WriteString("…")
			break
		}
		prompt := []rune(strings.Join(strings.Fields(s.Prompt), " "))
		if len(prompt) > long {
			prompt = append(prompt[:long], '…')
		}
		fmt.Fprintf(&b, "%s: %s, %s", s.ID, s.plan, s.State)
		if !s.Next.IsZero() {
			fmt.Fprintf(&b, ", next %s", stamp(s.Next))
		}
		fmt.Fprintf(&b, ": %s\n", string(prompt))
	}
	if b.Len() == 0 {
		return "There are no schedules. It is " + stamp(a.now().In(a.cfg.Zone)) + ".", nil
	}
	return strings.TrimRight(b.String(), "\n"), nil
}

func stamp(t time.Time) string { return t.Format("Mon 2006-01-02 15:04 MST") }
