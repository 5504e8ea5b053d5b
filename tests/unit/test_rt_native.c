/* SPDX-License-Identifier: Apache-2.0 */
/* Comments of an assembler's text that become instructions. */
#include "kernel/native.h"
#include "support/test_device.h"
#include <string.h>

static rnl_status translate(const char *ptx, size_t size, rnl_text *out)
{
    *out = (rnl_text){0};
    return rnl_native_translate(ptx, size, out);
}

START_TEST(instructions)
{
    static const char ptx[] =
        "//\n// Generated\n.version 8.8\n.target sm_90, texmode_independent\n.entry k()\n{\n\tmov.u32 %r1, 0;\n"
        "\t// begin inline asm\n\t//@ wgmma.fence.sync.aligned;\n\t// end inline asm\n//@ ret;\n}\n";
    static const char expected[] =
        "//\n// Generated\n.version 8.8\n.target sm_90a, texmode_independent\n.entry k()\n{\n\tmov.u32 %r1, 0;\n"
        "\t// begin inline asm\nwgmma.fence.sync.aligned;\n\t// end inline asm\nret;\n}\n";
    rnl_text text;
    ck_assert_int_eq(translate(ptx, sizeof ptx, &text), RNL_OK); /* the driver counts the end */
    ck_assert_str_eq(text.data, expected);
    ck_assert_uint_eq(text.length, strlen(expected));
    rnl_text_free(&text);
}
END_TEST

/* The last line may have no end, and the text none but its size. */
START_TEST(ends)
{
    static const char ptx[] = ".target sm_90\n//@ ret;XX";
    rnl_text text;
    ck_assert_int_eq(translate(ptx, strlen(ptx) - 2, &text), RNL_OK);
    ck_assert_str_eq(text.data, ".target sm_90a\nret;");
    rnl_text_free(&text);
    ck_assert_int_eq(translate(".target sm_90", strlen(".target sm_90"), &text), RNL_OK);
    ck_assert_str_eq(text.data, ".target sm_90a");
    rnl_text_free(&text);
}
END_TEST

/* Other processors, and what is no such text at all. */
START_TEST(others)
{
    static const char *const texts[] = {
        "", ".target sm_80\n//@ ret;\n", ".target sm_900\n", ".target sm_90a\n", "\177ELF\n.targe", ".target sm_9"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        rnl_text text;
        ck_assert_int_eq(translate(texts[i], strlen(texts[i]), &text), RNL_UNIMPLEMENTED);
        ck_assert(strstr(rnl_last_error()->message, "no PTX for sm_90"));
        rnl_text_free(&text);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("native");
    TCase *tests = tcase_create("translate");
    tcase_add_test(tests, instructions);
    tcase_add_test(tests, ends);
    tcase_add_test(tests, others);
    suite_add_tcase(suite, tests);
    return test_run(suite, false);
}
