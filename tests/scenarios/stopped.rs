//! tmux is stopped at a step of a daemon that goes on, for longer than anybody waits for an answer.
