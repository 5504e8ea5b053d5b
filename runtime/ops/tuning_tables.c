/* SPDX-License-Identifier: Apache-2.0 */
/* Written by tools/ship-tuning. */
#include "ops/tuning_shipped.h"

/* clang-format off */
static const rnl_shipped_entry entries0[] = {
    {{0x366269c6a940219cu, 0x7061c390f5f74c8du}, 8},
};

static const rnl_shipped_entry entries1[] = {
    {{0xf8ae2e753d597d65u, 0x091938a65c302621u}, 4},
    {{0x23ccc5649a0ffccau, 0x0c2d0188751a9b0cu}, 7},
    {{0x64c98974a9c4fe85u, 0x20c5820ddd1aa24cu}, 7},
    {{0x2222ff0702f27ff5u, 0x465a52156ed522e6u}, 8},
    {{0x54a4cf808d09584eu, 0x4acf287fd8578e89u}, 0},
    {{0xffa22291b1e4ef37u, 0x516197585ed3fdcau}, 0},
    {{0x9d487bf2eda9a6c3u, 0x72fd4a282eaa0bc6u}, 3},
    {{0xe50a9cab09552b7du, 0x7d1af46b6ee6f048u}, 1},
    {{0x8af097a7bbf7e897u, 0x83240169fc529171u}, 3},
    {{0x00dd9ccc9c120842u, 0x85b3aabd95affb75u}, 7},
    {{0xcb3ada1e17ac5009u, 0x87773da3580c20f9u}, 7},
    {{0x09554adcdb541353u, 0x88e4b275d92e480fu}, 7},
    {{0x0fb7bd6e842e9167u, 0xe27c012600b27f93u}, 0},
    {{0x625f3b9019d579e0u, 0xe5b6b74994749821u}, 9},
};

const rnl_shipped_table rnl_shipped_tables[] = {
    {16, 1, 1, 32768, 1048576, entries0, sizeof entries0 / sizeof *entries0},
    {16, 2, 2, 32768, 1048576, entries1, sizeof entries1 / sizeof *entries1},
    {0}};
/* clang-format on */
