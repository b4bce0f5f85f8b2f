-- Accounts that an operator has disabled: lists say so, and what signs in is asked of the log itself.

-- +goose Up
SET lock_timeout = '5s';

ALTER TABLE account ADD COLUMN disabled boolean NOT NULL DEFAULT false;
