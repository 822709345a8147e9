/* Goal: no bytes make the reader of journals misbehave, and what is taken for
 * an entry is legal and packs to no more bytes than it was read from. */
#include <string.h>

#include "kith/assert.h"
#include "kith/journal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void assert_legal(const struct kith_journal_entry *entry)
{
    const struct kith_event *event = &entry->event;
    if (entry->kind != KITH_JOURNAL_EVENT)
        return;
    KITH_ASSERT(event->now_ns >= 0);
    KITH_ASSERT(event->from == KITH_NOBODY || event->from < KITH_PEERS_MAX);
    KITH_ASSERT(entry->message.kind < KITH_MESSAGE_COUNT);
    KITH_ASSERT(entry->result.kind < KITH_WORK_COUNT);
    KITH_ASSERT(event->kind != KITH_EVENT_MESSAGE ||
                entry->message.slot == KITH_SLOT_NONE ||
                entry->message.slot < KITH_SLOTS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kith_journal_clock clock = {0}, again = {0};
    struct kith_journal_entry entry;
    uint8_t packed[KITH_JOURNAL_ENTRY_BYTES_MAX];
    size_t at = 0, used = 0;
    while (kith_journal_unpack(&clock, data + at, size - at, &entry, &used) ==
           KITH_OK) {
        assert_legal(&entry);
        KITH_ASSERT(used > 0 && used <= size - at);
        entry.event.message = &entry.message;
        entry.event.result = &entry.result;
        KITH_ASSERT(kith_journal_pack(&again, &entry, packed) <= used);
        KITH_ASSERT(memcmp(&clock, &again, sizeof clock) == 0);
        at += used;
    }
    return 0;
}
